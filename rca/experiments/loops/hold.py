"""Memory that steps need and leave behind, traced at the run's real sizes without data. Imported in the child only."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch

from rca.experiments.loops.config import LoopConfig, Setting
from rca.experiments.memory.question import GIB, MemoryQuestion
from rca.experiments.memory.track import at_depth, fake_step

_STEPS = 3


def hold(config: LoopConfig, setting: Setting) -> dict[str, float]:
    """Return `growth_gib`, what each step leaves on the device, and `peak_gib` of one step with its backward pass."""
    if setting.question is None:
        raise ValueError("tracing needs the sizes of a step")
    question = setting.question.model_copy(
        update={"checkpointing": config.checkpointing, "attention": config.attention}
    )
    measured = at_depth(question, lambda sizes, depth: _measure(config, sizes, depth))
    return {name: value / GIB for name, value in measured.items()}


def _measure(config: LoopConfig, question: MemoryQuestion, depth: int) -> dict[str, float]:
    alive: list[int] = []
    kept: list[Any] = []
    with fake_step(question, depth) as (tracker, forward), nullcontext() if config.grad else torch.no_grad():
        for _ in range(_STEPS):
            output = forward()
            if config.keeps == "graph":
                kept.append(output.loss)
            elif config.keeps == "outputs":
                kept.append(output.logits)
            del output
            alive.append(tracker.live)
    if config.mode == "eval":
        return {"growth_gib": float(alive[-1] - alive[-2]), "peak_gib": 0.0}
    with fake_step(question, depth) as (tracker, forward):
        forward().loss.backward()
        return {"growth_gib": float(alive[-1] - alive[-2]), "peak_gib": float(tracker.peak)}

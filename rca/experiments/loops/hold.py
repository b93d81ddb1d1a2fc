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
    """Return `growth_gib`, what each step leaves on the device."""
    measured = at_depth(_question(config, setting), lambda sizes, depth: _growth(config, sizes, depth))
    return {"growth_gib": measured["growth"] / GIB}


def peak(config: LoopConfig, setting: Setting) -> dict[str, float]:
    """Return `peak_gib` of one step with its backward pass: weights, gradients and activations."""
    return {"peak_gib": at_depth(_question(config, setting), _peak)["peak"] / GIB}


def _question(config: LoopConfig, setting: Setting) -> MemoryQuestion:
    if setting.question is None:
        raise ValueError("tracing needs the sizes of a step")
    return setting.question.model_copy(
        update={"task": "train", "checkpointing": config.checkpointing, "attention": config.attention}
    )


def _growth(config: LoopConfig, question: MemoryQuestion, depth: int) -> dict[str, float]:
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
    return {"growth": float(alive[-1] - alive[-2])}


def _peak(question: MemoryQuestion, depth: int) -> dict[str, float]:
    with fake_step(question, depth) as (tracker, forward):
        forward().loss.backward()
        return {"peak": float(tracker.peak)}

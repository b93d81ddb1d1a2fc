"""Both arms of a loop in one job, alternating, so that a busy machine slows them alike. Imported in the child only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rca.experiments.loops.compilation import compilation
from rca.experiments.loops.config import LoopConfig, Setting
from rca.experiments.loops.decode import align, decode, score
from rca.experiments.loops.generate import generate
from rca.experiments.loops.hold import hold, peak
from rca.experiments.loops.load import load
from rca.experiments.loops.pad import pad
from rca.experiments.loops.repeat import repeat
from rca.experiments.loops.step import step

LOOPS: Mapping[str, Callable[[LoopConfig, Setting], dict[str, float]]] = {
    "load": load,
    "pad": pad,
    "step": step,
    "hold": hold,
    "peak": peak,
    "compile": compilation,
    "generate": generate,
    "decode": decode,
    "score": score,
    "align": align,
    "repeat": repeat,
}


def run_arms(payload: Mapping[str, Any]) -> list[list[dict[str, float]]]:
    """Return the figures of each arm, one set a repetition; each repetition has a seed of its own."""
    arms = [LoopConfig.model_validate(arm) for arm in payload["arms"]]
    setting = Setting.from_payload(payload["setting"])
    found: list[list[dict[str, float]]] = [[] for _ in arms]
    for number in range(payload["repeats"]):
        for arm, figures in zip(arms, found, strict=True):
            seeded = arm.model_copy(update={"seed": number})
            figures.append({name: round(value, 6) for name, value in LOOPS[arm.loop](seeded, setting).items()})
    return found

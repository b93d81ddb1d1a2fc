"""Named checks that need no training. Imported in the child process only: loads torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rca.experiments.capacity import MemoryQuestion
from rca.experiments.memory import LiveBytes, at_depth, fake_step


def run_probe(name: str, settings: Mapping[str, Any]) -> dict[str, float]:
    """Run one named check. Raises ValueError for an unknown name."""
    if name not in PROBES:
        raise ValueError(f"unknown probe {name!r}; known are {', '.join(sorted(PROBES))}")
    return PROBES[name](settings)


def kept_bytes(settings: Mapping[str, Any]) -> dict[str, float]:
    """Bytes that each step leaves behind at the run's sizes: `graph` when its graph is kept, `outputs` when only the
    logits are, `number` when nothing but a number is."""
    return at_depth(MemoryQuestion.model_validate(settings["question"]), _kept)


def _kept(question: MemoryQuestion, depth: int) -> dict[str, float]:
    growth = {}
    for keep in ("graph", "outputs", "number"):
        with fake_step(question, depth) as (tracker, forward):
            growth[keep] = _growth(tracker, forward, keep)
    return growth


def _growth(tracker: LiveBytes, forward: Callable[[], Any], keep: str) -> float:
    kept: list[Any] = []
    alive: list[int] = []
    for _ in range(3):
        output = forward()
        if keep == "graph":
            kept.append(output.loss)
        elif keep == "outputs":
            kept.append(output.logits.detach())
        del output
        alive.append(tracker.live)
    return float(alive[-1] - alive[-2])


PROBES: dict[str, Callable[[Mapping[str, Any]], dict[str, float]]] = {"kept_bytes": kept_bytes}

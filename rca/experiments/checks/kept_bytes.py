"""`kept_bytes`: does memory grow as fast as it would if each step kept its graph or its outputs?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rca.errors import ExperimentError
from rca.experiments.checks.check import Asked, Check, Outcome
from rca.experiments.memory.question import GIB, MemoryQuestion, question_of

CLOSE = 2.0
"""Predicted and observed growth of memory agree when neither is more than twice the other."""


def kept_bytes(settings: Mapping[str, Any]) -> dict[str, float]:
    """Bytes that each step leaves behind at the run's sizes: `graph` when its graph is kept, `outputs` when only the
    logits are, `number` when nothing but a number is."""
    from rca.experiments.memory.track import at_depth

    return at_depth(MemoryQuestion.model_validate(settings["question"]), _kept)


def _kept(question: MemoryQuestion, depth: int) -> dict[str, float]:
    from rca.experiments.memory.track import fake_step

    growth = {}
    for keep in ("graph", "outputs", "number"):
        with fake_step(question, depth) as (tracker, forward):
            growth[keep] = _growth(tracker, forward, keep)
    return growth


def _growth(tracker: Any, forward: Callable[[], Any], keep: str) -> float:
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


def judge(asked: Asked) -> Outcome:
    """Growth of device memory: that of a kept graph, of kept outputs, or of neither?"""
    observed = asked.profile.growth_gib_per_step
    if not observed or observed <= 0:
        raise ExperimentError("the run recorded no growth of device memory per step")
    found = asked.measure({"question": question_of(asked.profile).model_dump(mode="json")})
    growth = {name: float(value) / GIB for name, value in found.items()}
    details = (
        ("observed growth a step", f"{observed:.3g} GiB"),
        *((f"growth when each step keeps its {name}", f"{value:.3g} GiB") for name, value in growth.items()),
    )
    alike = [name for name, value in growth.items() if value > 0 and 1 / CLOSE <= observed / value <= CLOSE]
    said = (
        f"The run grew by {observed:.3g} GiB a step; keeping the graph of each step would leave "
        f"{growth['graph']:.3g} GiB, keeping the outputs {growth['outputs']:.3g} GiB."
    )
    scope = "bytes that a step leaves behind at the run's sizes, traced without data"
    if alike:
        return Outcome("confirmed", f"{said} The growth is that of kept {alike[0]}.", scope, details)
    return Outcome("inconclusive", f"{said} Neither is what was seen.", scope, details)


CHECK = Check(judge, kept_bytes)

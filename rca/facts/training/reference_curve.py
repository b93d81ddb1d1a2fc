"""The loss of an earlier or healthy run, kept beside the run for comparison."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number
from rca.facts.interface import Fact, FactFunction
from rca.facts.training.curves import Curve, curves

CATALOGUE: Mapping[str, str] = {
    "loss.over_reference": "last level of the loss over that of a reference curve at the same steps (x)",
    "eval.over_reference": "last level of the validation loss over that of a reference curve (x)",
}

_REFERENCE = re.compile(
    r"(?<![a-z])(?:baseline|reference|ref|previous|prev|last_good|good|healthy|expected|earlier|old|control)(?![a-z])",
    re.I,
)
"""Words with which people name what they compare with."""
_LATE = 0.7
"""The last three tenths of the common steps are compared, past warm-up."""


def reference(events: EventTable) -> Iterator[Fact]:
    """How much higher is the loss than in the run that it is compared with?"""
    for metric, fact in (("loss", "loss.over_reference"), ("eval_loss", "eval.over_reference")):
        found = curves(events, metric)
        theirs = [line for line in found if _REFERENCE.search(line.source) and len(line) >= 1]
        ours = [line for line in found if not _REFERENCE.search(line.source) and len(line) >= 3]
        if not theirs or not ours:
            continue
        mine, other = max(ours, key=len), max(theirs, key=len)
        levels = _levels(mine, other)
        if levels is None:
            continue
        words = "loss" if metric == "loss" else "validation loss"
        says = (
            f"The {words} ends at {number(levels[0])} where {other.source} has {number(levels[1])}: "
            f"{number(levels[0] / levels[1])} times as much."
        )
        yield from emit(fact, levels[0] / levels[1], says, unit="x", events=[mine.event_id[-1], other.event_id[-1]])


def _levels(mine: Curve, other: Curve) -> tuple[float, float] | None:
    """Return the late levels of both curves over the steps that both have, or None."""
    good, known = mine.pick(mine.finite), other.pick(other.finite)
    if not len(good) or not len(known):
        return None
    if np.isfinite(good.step).all() and np.isfinite(known.step).all() and np.ptp(good.step) > 0:
        end = min(float(good.step.max()), float(known.step.max()))
        start = _LATE * end
        good = good.pick((good.step >= start) & (good.step <= end))
        known = known.pick((known.step >= start) & (known.step <= end))
        if not len(good) or not len(known):
            return None
    else:
        good, known = (line.pick(np.arange(int(_LATE * len(line)), len(line))) for line in (good, known))
    first, second = float(np.median(good.value)), float(np.median(known.value))
    return (first, second) if first > 0 and second > 0 else None


FACTS: tuple[FactFunction, ...] = (reference,)

"""What the loss and the gradient norm did just before the loss stopped being finite: a climb, or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number
from rca.facts.interface import Fact, FactFunction
from rca.facts.training.divergence import diverged_from, loss_shape
from rca.facts.training.non_finite import NonFinite, non_finite_loss

if TYPE_CHECKING:
    import numpy.typing as npt

CATALOGUE: Mapping[str, str] = {
    "loss.abrupt_nan": "the last finite losses and gradient norms before the non-finite one were ordinary",
    "loss.growth_before_nan": "largest of the last two finite losses over the median before the climb (x)",
}

ORDINARY_GROWTH = 2.0
"""A last finite loss below this multiple of its recent median is ordinary."""
ORDINARY_NORM_GROWTH = 5.0
"""Same for the gradient norm, which is noisier; half of the 10x of the explosion rule (FACTS 4, runmedic)."""


def approach(events: EventTable) -> Iterator[Fact]:
    """Was there a climb before the loss stopped being finite?"""
    found = non_finite_loss(events)
    if found is None or found.first is None:
        return
    onset = found.persists_from if found.persists_from is not None else found.first
    line = found.curve
    before = np.flatnonzero(~found.bad[:onset] & ~found.masked[:onset])
    if len(before) < 3:
        return
    values = line.value[before]
    base = _base(events, values, lasting=found.persists_from is not None)
    last = float(np.max(values[-2:]))
    if base <= 0:
        return
    growth = last / base
    seen = line.event_id[[*before[-3:][::-1], onset]]
    says = f"The last finite losses reach {number(last)} against a median of {number(base)} before: {number(growth)}x."
    yield from emit("loss.growth_before_nan", growth, says, unit="x", events=seen)
    norm_growth = _norm_growth(found, before)
    calm = growth < ORDINARY_GROWTH and (norm_growth is None or norm_growth < ORDINARY_NORM_GROWTH)
    norm_says = "" if norm_growth is None else f" and the gradient norm {number(norm_growth)}x its median"
    says = f"Just before {line.place(onset)} the loss was {number(growth)}x its recent median{norm_says}."
    yield from emit("loss.abrupt_nan", calm, says, events=seen)


def _base(events: EventTable, values: npt.NDArray[np.float64], *, lasting: bool) -> float:
    """Median of the twenty losses before the last two, or before the divergence where there is one."""
    shape = loss_shape(events)
    climb = diverged_from(shape) if shape is not None and lasting and len(shape.curve) == len(values) else None
    calm = values[: climb if climb is not None and climb >= 3 else max(len(values) - 2, 1)]
    return float(np.median(calm[-20:]))


def _norm_growth(found: NonFinite, before: npt.NDArray[np.int64]) -> float | None:
    if found.norm is None:
        return None
    norm = found.norm[before]
    norm = norm[np.isfinite(norm)]
    if len(norm) < 3:
        return None
    base = float(np.median(norm[: max(len(norm) - 2, 1)][-20:]))
    return float(np.max(norm[-2:])) / base if base > 0 else None


FACTS: tuple[FactFunction, ...] = (approach,)

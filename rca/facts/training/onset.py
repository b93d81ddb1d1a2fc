"""The step at which the numbers of a training run went wrong, read off its curves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from rca.events import EventTable
from rca.facts.memo import once_per_table
from rca.facts.training.curves import Curve, curve
from rca.facts.training.divergence import diverged_from, loss_shape
from rca.facts.training.non_finite import non_finite_loss


@once_per_table
def onset_step(events: EventTable) -> float | None:
    """Return the first step of a lasting divergence or of a non-finite loss or gradient norm; None for calm curves."""
    known = [float(line.step[index]) for line, index in _onsets(events) if np.isfinite(line.step[index])]
    return min(known) if known else None


@once_per_table
def onset_event(events: EventTable) -> int | None:
    """Return the event of that point, which is known for logs without steps as well."""
    return min((int(line.event_id[index]) for line, index in _onsets(events)), default=None)


def before_onset(events: EventTable, line: Curve) -> npt.NDArray[np.bool_] | None:
    """Return which points of a curve lie before the trouble; None when there was none or it has no place."""
    if not np.isfinite(line.step).any():
        event = onset_event(events)
        return None if event is None else np.asarray(line.event_id < event)
    step = onset_step(events)
    return None if step is None else np.asarray(line.step < step)


def _onsets(events: EventTable) -> Iterator[tuple[Curve, int]]:
    """Yield the curves that broke, each with the point at which it did."""
    found = non_finite_loss(events)
    if found is not None and found.first is not None:
        yield found.curve, found.first if found.persists_from is None else found.persists_from
    shape = loss_shape(events)
    onset = None if shape is None else diverged_from(shape)
    if shape is not None and onset is not None:
        yield shape.curve, onset
    norm = curve(events, "grad_norm")
    if norm is not None and not norm.finite[-1] and norm.finite.any():
        yield norm, int(np.flatnonzero(norm.finite)[-1]) + 1

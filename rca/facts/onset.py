"""The step at which the numbers of a training run went wrong, read off its curves."""

from __future__ import annotations

import numpy as np

from rca.events import EventTable
from rca.facts.curves import curve
from rca.facts.divergence import diverged_from, loss_shape
from rca.facts.memo import once_per_table
from rca.facts.non_finite import non_finite_loss


@once_per_table
def onset_step(events: EventTable) -> float | None:
    """Return the first step of a lasting divergence or of a non-finite loss or gradient norm; None for calm curves."""
    steps: list[float] = []
    found = non_finite_loss(events)
    if found is not None and found.first is not None:
        lasting = found.persists_from
        steps.append(float(found.curve.step[found.first if lasting is None else lasting]))
    shape = loss_shape(events)
    if shape is not None:
        onset = diverged_from(shape)
        if onset is not None:
            steps.append(float(shape.curve.step[onset]))
    norm = curve(events, "grad_norm")
    if norm is not None and not norm.finite[-1] and norm.finite.any():
        last_finite = int(np.flatnonzero(norm.finite)[-1])
        steps.append(float(norm.step[last_finite + 1]))
    known = [step for step in steps if np.isfinite(step)]
    return min(known) if known else None

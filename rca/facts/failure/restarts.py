"""Does the training go back to a step that it had passed, because the job was resumed or started over?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rca.events import EventTable
from rca.facts.emit import emit
from rca.facts.interface import Fact, FactFunction
from rca.facts.training.continued import follows
from rca.metric_series import MetricSeries

CATALOGUE: Mapping[str, str] = {
    "run.restarts": "times that the training went back to a step it had passed",
    "run.restart_step": "step at which the last of these stretches begins",
    "run.steps_repeated": "steps that were done again after them",
}

_METRICS = ("loss", "grad_norm", "learning_rate")
_FEWEST = 3
"""Points in a row at steps that were passed before: one or two come from writers that do not keep the order."""
_EPOCHS = 2
_ALIKE = 0.02


class _Back(NamedTuple):
    """A place where the steps go back."""

    before: float
    after: float
    event_id: int


def restarts(events: EventTable) -> Iterator[Fact]:
    """Look for steps that go back within a file, and from one event file of a folder to the next."""
    found: list[_Back] = []
    for name in _METRICS:
        series = [item for item in events.all_metrics(name) if len(item) >= _FEWEST and np.isfinite(item.step).all()]
        found = max([_between(series), *map(_within, series)], key=len, default=[])
        if found:
            break
    if not found:
        return
    last = found[-1]
    repeated = int(sum(item.before - item.after for item in found))
    times = "once" if len(found) == 1 else f"{len(found)} times"
    says = f"The training went back {times}, the last time from step {last.before:.0f} to step {last.after:.0f}."
    seen = [item.event_id for item in found][::-1]
    yield from emit("run.restarts", len(found), says, events=seen)
    yield from emit("run.restart_step", int(last.after), says, unit="step", events=seen)
    yield from emit("run.steps_repeated", repeated, says, unit="step", events=seen)


def _within(series: MetricSeries) -> list[_Back]:
    """Return where one file goes back; not where its steps are counted anew in every epoch."""
    found = _backs(series.step, series.event_id)
    tops = np.array([item.before for item in found])
    anew = all(item.after <= series.step[0] for item in found)
    if len(found) >= _EPOCHS and anew and np.ptp(tops) <= _ALIKE * tops.max():
        return []
    return found


def _between(series: list[MetricSeries]) -> list[_Back]:
    """Return where one event file begins before the end of the one that was written before it."""
    ordered = sorted(series, key=lambda item: int(item.event_id[0]))
    found = []
    for earlier, later in pairwise(ordered):
        if follows(earlier, later) and _repeats(later.step, float(earlier.step.max())):
            found.append(_Back(float(earlier.step.max()), float(later.step[0]), int(later.event_id[0])))
    return found


def _backs(step: npt.NDArray[np.float64], event_id: npt.NDArray[np.int64]) -> list[_Back]:
    places = np.flatnonzero(np.diff(step) < 0) + 1
    return [
        _Back(float(step[place - 1]), float(step[place]), int(event_id[place]))
        for place in places.tolist()
        if _repeats(step[place:], float(step[place - 1]))
    ]


def _repeats(step: npt.NDArray[np.float64], reached: float) -> bool:
    """Say whether a stretch begins with several points at steps that were reached before."""
    start = step[:_FEWEST]
    return len(start) == _FEWEST and bool((start <= reached).all()) and bool((np.diff(start) > 0).all())


FACTS: tuple[FactFunction, ...] = (restarts,)

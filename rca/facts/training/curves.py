"""One metric as a clean curve: in the order it was logged, without repeats and without end-of-run averages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rca.events import EventTable
from rca.facts.memo import once_per_table
from rca.facts.training.continued import continued
from rca.metric_series import MetricSeries

if TYPE_CHECKING:
    import numpy.typing as npt

LARGEST, SMALLEST = 1e100, 1e-100
"""Beyond what single precision can hold by far: such a number is an overflow, or no measurement at all."""
SUMMARY_METRICS = ("train_runtime", "total_flos")
"""Raw names that only stand in the summary at the end of a run, whose losses are averages over the run."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One metric over the run. Points stay in log order: a step may fall back where a run was resumed."""

    name: str
    source: str
    rank: int | None
    step: npt.NDArray[np.float64]
    """Optimizer steps; NaN where the log gave none."""
    value: npt.NDArray[np.float64]
    event_id: npt.NDArray[np.int64]
    unit: str = ""

    def __len__(self) -> int:
        return len(self.value)

    @property
    def finite(self) -> npt.NDArray[np.bool_]:
        """Where the value is a number."""
        return np.isfinite(self.value)

    def pick(self, where: npt.NDArray[np.bool_] | npt.NDArray[np.int64] | slice) -> Curve:
        """Return the curve at some of its points."""
        return replace(self, step=self.step[where], value=self.value[where], event_id=self.event_id[where])

    def step_at(self, index: int) -> int | None:
        """Return the step of a point, if the log gave one."""
        step = self.step[index]
        return int(step) if np.isfinite(step) else None

    def place(self, index: int) -> str:
        """Say where a point is: `step 1200`, or `point 12` where the log gave no steps."""
        step = self.step_at(index)
        index = index if index >= 0 else len(self) + index
        return f"step {step}" if step is not None else f"point {index + 1} of {len(self)}"

    def where(self) -> str:
        """Say who reported it: ` on rank 3`, or nothing when only one rank did."""
        return "" if self.rank is None else f" on rank {self.rank}"

    def position(self, index: int) -> int:
        """Return the step of a point, or its index where the log gave no steps."""
        step = self.step_at(index)
        return (index if index >= 0 else len(self) + index) if step is None else step


def curve(events: EventTable, name: str) -> Curve | None:
    """Return the metric as its most complete source reported it, or None."""
    found = curves(events, name)
    return max(found, key=len) if found else None


def curves(events: EventTable, name: str) -> tuple[Curve, ...]:
    """Return the metric as each (source, rank) reported it, without the empty ones."""
    known = _cleaned(events)
    if name not in known:
        summaries = _summary_places(events)
        cleaned = (_clean(series, events, summaries) for series in continued(events.all_metrics(name)))
        known[name] = tuple(item for item in cleaned if len(item))
    return known[name]


@once_per_table
def _cleaned(_events: EventTable) -> dict[str, tuple[Curve, ...]]:
    """Curves that were asked for already."""
    return {}


@once_per_table
def _summary_places(events: EventTable) -> frozenset[tuple[str, int]]:
    """Places (source, line) of end-of-run summaries."""
    found: set[tuple[str, int]] = set()
    for name in SUMMARY_METRICS:
        for series in events.all_metrics(name):
            found.update((series.source, line) for line in _lines(events, series.event_id) if line is not None)
    return frozenset(found)


def _lines(events: EventTable, event_id: npt.NDArray[np.int64]) -> list[int | None]:
    picked: list[int | None] = events.table["line"].take(pa.array(event_id)).to_pylist()
    return picked


def _clean(series: MetricSeries, events: EventTable, summaries: frozenset[tuple[str, int]]) -> Curve:
    keep = np.ones(len(series), dtype=bool)
    if any(source == series.source for source, _ in summaries):
        lines = _lines(events, series.event_id)
        keep &= np.array([(series.source, line) not in summaries for line in lines], dtype=bool)
    if len(series) > 1 and (series.step[1:] == series.step[:-1]).any():
        places = _lines(events, series.event_id)
        keep[1:] &= np.array([here is None or here != before for before, here in pairwise(places)], dtype=bool)
        left, right = series.value[:-1], series.value[1:]
        same = (right == left) | (np.isnan(right) & np.isnan(left))
        keep[1:] &= ~(same & (series.step[1:] == series.step[:-1]))
    value = series.value[keep].astype(float)
    value[np.abs(value) < SMALLEST] = 0.0
    value[value > LARGEST] = np.inf
    value[value < -LARGEST] = -np.inf
    return Curve(
        name=series.name,
        source=series.source,
        rank=series.rank,
        step=series.step[keep],
        value=value,
        event_id=series.event_id[keep],
        unit=series.unit,
    )


def at_or_before(line: Curve, step: float) -> int | None:
    """Return the index of the last point whose step is at most `step`, or None."""
    found = np.flatnonzero(line.step <= step)
    return int(found[-1]) if len(found) else None


def config_number(events: EventTable, key: str) -> float | None:
    """Return a numeric setting, or None where it is absent or not a finite number."""
    found = events.config(key)
    if found is None or found.value is None or not np.isfinite(found.value):
        return None
    return float(found.value)


def config_text(events: EventTable, key: str) -> str:
    """Return a setting as written, lower case, or an empty string."""
    found = events.config(key)
    return "" if found is None else found.text.strip().strip("'\"").lower()

"""The figures of the profiler traces in the event table: one value a step, and the summed spans."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rca.events import EventTable
from rca.facts.memo import once_per_table

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Trace:
    """The figures of one trace: name -> one value a step."""

    source: str
    rank: int | None
    figures: Mapping[str, Floats]
    marked: bool
    """Its steps were marked; otherwise the whole trace counts as one step."""
    event_id: npt.NDArray[np.int64]
    """The events of the step durations."""

    def total(self, name: str) -> float:
        """Return the sum over all steps; 0 where the trace lacks the figure."""
        return float(np.nansum(self.figures[name])) if name in self.figures else 0.0


@once_per_table
def traces(events: EventTable) -> tuple[Trace, ...]:
    """Return the figures of all traces, those with marked steps only where there are any."""
    found: dict[tuple[str, int | None], dict[str, Floats]] = {}
    about: dict[tuple[str, int | None], tuple[bool, npt.NDArray[np.int64]]] = {}
    for name in events.metric_names:
        if name.startswith("trace."):
            for series in events.all_metrics(name):
                key = (series.source, series.rank)
                found.setdefault(key, {})[name.removeprefix("trace.")] = series.value
                if name == "trace.step_us":
                    about[key] = (bool(np.isfinite(series.step).all()), series.event_id)
    every = [Trace(*key, figures=found[key], marked=about[key][0], event_id=about[key][1]) for key in about]
    every = [item for item in every if item.total("step_us") > 0]
    marked = [item for item in every if item.marked]
    return tuple(sorted(marked or every, key=lambda item: (-1 if item.rank is None else item.rank, item.source)))


class Sums:
    """Sums over the traces that have a figure."""

    def __init__(self, items: tuple[Trace, ...]) -> None:
        self.items = items
        self.ids = [int(item.event_id[0]) for item in items]

    def having(self, *names: str) -> list[Trace]:
        """Return the traces that have all these figures."""
        return [item for item in self.items if all(name in item.figures for name in names)]

    def ratio(self, part: str, whole: str) -> float | None:
        """Return part over whole, over the traces that have both."""
        having = self.having(part, whole)
        total = sum(item.total(whole) for item in having)
        return sum(item.total(part) for item in having) / total if total > 0 else None

    def each_step(self, name: str) -> float | None:
        """Return the mean of a count over all steps."""
        having = self.having(name)
        return float(np.mean(np.concatenate([item.figures[name] for item in having]))) if having else None


class Total(NamedTuple):
    """All spans of one name in one trace."""

    source: str
    rank: int | None
    name: str
    category: str
    duration: float
    """Microseconds."""
    calls: int
    event_id: int
    device: float = 0.0
    """Microseconds of the kernels that an operator itself launched."""
    shapes: str = ""
    """Input shapes with which an operator takes longest, as JSON text."""


@once_per_table
def totals(events: EventTable) -> tuple[Total, ...]:
    """Return the summed spans of all traces (those that carry a number of calls)."""
    table = events.table
    mask = pc.and_(pc.equal(table["kind"].cast(pa.string()), "span"), pc.is_valid(table["duration_us"]))
    rows = table.filter(mask)
    found = []
    columns = [rows[name].cast(pa.string()).to_pylist() for name in ("source", "name", "attrs")]
    numbers = [rows[name].to_pylist() for name in ("rank", "duration_us", "event_id")]
    for source, name, attrs, rank, duration, event_id in zip(*columns, *numbers, strict=True):
        told = json.loads(attrs) if attrs else {}
        if "calls" in told and told.get("category") and not name.startswith("collective."):
            device, shapes = told.get("device_us") or 0.0, told.get("shapes") or [{}]
            total = Total(source, rank, name, told["category"], duration, int(told["calls"]), event_id)
            found.append(total._replace(device=float(device), shapes=str(shapes[0].get("inputs", ""))))
    return tuple(found)

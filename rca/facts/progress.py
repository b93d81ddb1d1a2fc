"""How far the run got, and what still moved after an event: an error that training survives is not the failure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rca.events import Event, EventTable
from rca.facts.memo import once_per_table

if TYPE_CHECKING:
    import numpy.typing as npt

DEVICE_METRICS = frozenset({"gpu_utilization", "gpu_temperature", "sm_clock", "power", "fan", "memory_clock"})
"""Readings of the device go on when the job is dead; they are no progress."""


@dataclass(frozen=True, eq=False)
class Progress:
    """The metric rows of the run that count as progress, in event order."""

    source: npt.NDArray[np.object_]
    line: npt.NDArray[np.float64]
    time: npt.NDArray[np.float64]
    """Microseconds since the epoch; NaN where unknown."""
    step: npt.NDArray[np.float64]
    """NaN where unknown."""
    event_id: npt.NDArray[np.int64]

    @property
    def last_step(self) -> int | None:
        """Largest step that any metric reached."""
        known = self.step[np.isfinite(self.step)]
        return int(np.max(known)) if len(known) else None

    def step_before(self, event: Event) -> int | None:
        """Return the last step reported before the event: in its own source, else anywhere by time."""
        if event.step is not None:
            return event.step
        known = np.isfinite(self.step)
        if event.line is not None:
            own = known & (self.source == event.source) & (self.line <= event.line)
            if own.any():
                return int(self.step[own][-1])
            if (known & (self.source == event.source)).any():
                return None
        if event.time is not None and np.isfinite(self.time[known]).any():
            timed = known & (self.time <= event.time)
            return int(np.max(self.step[timed])) if timed.any() else None
        return self.last_step

    def goes_on_after(self, event: Event) -> int:
        """Return how many further steps (or readings, where no steps are known) were reported after the event."""
        after = np.zeros(len(self.line), dtype=bool)
        if event.line is not None:
            after |= (self.source == event.source) & (self.line > event.line)
        if event.time is not None:
            after |= (self.source != event.source) & (self.time > event.time + 1e6)
        if not after.any():
            return 0
        if np.isfinite(self.step).any():
            steps = np.unique(self.step[after & np.isfinite(self.step)])
            before = self.step_before(event)
            return int(np.sum(steps > before)) if before is not None else len(steps)
        return len(np.unique(self.line[after]))


@once_per_table
def progress(events: EventTable) -> Progress:
    """Return the rows of the run's own metrics."""
    table = events.table
    rows = table.filter(pc.equal(table["kind"].cast(pa.string()), "metric"))
    names = rows["name"].cast(pa.string())
    rows = rows.filter(pc.invert(pc.is_in(names, value_set=pa.array(sorted(DEVICE_METRICS)))))
    source = np.asarray(rows["source"].cast(pa.string()).to_pylist(), dtype=object)
    return Progress(
        source=source,
        line=_floats(rows["line"]),
        time=_floats(rows["time"].cast(pa.int64())),
        step=_floats(rows["step"]),
        event_id=rows["event_id"].to_numpy(),
    )


def _floats(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=float)


class Clock:
    """Times of events that carry none: the last time that their source showed before them, else the first after."""

    def __init__(self, events: EventTable) -> None:
        table = events.table
        timed = table.filter(pc.and_(pc.is_valid(table["time"]), pc.is_valid(table["line"])))
        source = np.asarray(timed["source"].cast(pa.string()).to_pylist(), dtype=object)
        line, time = _floats(timed["line"]), _floats(timed["time"].cast(pa.int64()))
        self._known: dict[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]] = {}
        for name in dict.fromkeys(source):
            own = source == name
            order = np.argsort(line[own], kind="stable")
            self._known[name] = (line[own][order], time[own][order])

    def time(self, event: Event) -> float:
        """Return microseconds since the epoch, or NaN when its source shows no time at all."""
        if event.time is not None:
            return float(event.time)
        if event.line is None or event.source not in self._known:
            return math.nan
        line, time = self._known[event.source]
        index = int(np.searchsorted(line, event.line, side="right")) - 1
        return float(time[max(index, 0)])


@once_per_table
def clock(events: EventTable) -> Clock:
    """Return the clock of an event table."""
    return Clock(events)

"""How far the run got, and what still moved after an event: an error that training survives is not the failure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rca.events import Event, EventTable
from rca.facts.memo import once_per_table

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

DEVICE_METRICS = frozenset(
    {
        "gpu_utilization", "gpu_temperature", "gpu_memory_used", "gpu_memory_total", "sm_clock", "power", "fan",
        "memory_clock",
    }
)  # fmt: skip
"""Readings of the device go on when the job is dead; they are no progress."""


class Track(NamedTuple):
    """How far one source came, by line: the steps in their order, and the last line that showed each step."""

    line: Floats
    step: Floats
    distinct: Floats
    """Distinct steps (or distinct lines, where no steps are known), ascending."""
    last_line: Floats
    """Last line that showed each of them."""


@dataclass(frozen=True, eq=False)
class Progress:
    """What the run reported of itself."""

    rows: int
    last_step: int | None
    """Largest step that any metric reached."""
    last_event: int | None
    """Event that reported it, or the last report where there are no steps."""
    tracks: dict[str, Track]
    distinct: Floats
    """Distinct steps with a time, ascending."""
    first_time: Floats
    last_time: Floats
    """When each of them was reported first and last; microseconds since the epoch."""
    stepped: bool
    """Whether any step is known."""

    def step_before(self, event: Event) -> int | None:
        """Return the last step reported before the event: in its own source, else anywhere by time."""
        if event.step is not None:
            return event.step
        track = self.tracks.get(event.source)
        if track is not None and event.line is not None and len(track.step):
            index = int(np.searchsorted(track.line, event.line, side="right")) - 1
            return int(track.step[index]) if index >= 0 else None
        if event.time is not None and len(self.distinct):
            index = int(np.searchsorted(self._first_from_here, event.time, side="right")) - 1
            return int(self.distinct[index]) if index >= 0 else None
        return self.last_step

    @cached_property
    def _first_from_here(self) -> Floats:
        """For each step when it or a later one was reported first: ascending, so that it can be searched."""
        return np.minimum.accumulate(self.first_time[::-1])[::-1]

    def goes_on_after(self, event: Event) -> int:
        """Return how many further steps (or readings, where no steps are known) were reported after the event."""
        before = self.step_before(event) if self.stepped else None
        floor = -math.inf if before is None else before
        counts = [0]
        track = self.tracks.get(event.source)
        if track is not None and event.line is not None:
            further = np.searchsorted(track.distinct, floor, side="right")
            counts.append(int(np.count_nonzero(track.last_line[further:] > event.line)))
        if event.time is not None and self.stepped:
            further = np.searchsorted(self.distinct, floor, side="right")
            counts.append(int(np.count_nonzero(self.last_time[further:] > event.time + 1e6)))
        return max(counts)

    def steps_between(self, start: float, end: float) -> int:
        """Return how many steps were reported first between two times (microseconds since the epoch)."""
        return int(np.count_nonzero((self.first_time > start) & (self.first_time <= end)))

    def steps_up_to(self, step: float) -> int:
        """Return how many distinct steps were reported up to this one, in the source that reported most."""
        return max(
            (int(np.sum(track.distinct <= step)) for track in self.tracks.values() if len(track.step)), default=0
        )


@once_per_table
def progress(events: EventTable) -> Progress:
    """Return how far the run's own metrics came."""
    table = events.table
    rows = table.filter(pc.equal(table["kind"].cast(pa.string()), "metric"))
    names = rows["name"].cast(pa.string())
    rows = rows.filter(pc.invert(pc.is_in(names, value_set=pa.array(sorted(DEVICE_METRICS)))))
    step, line = _floats(rows["step"]), _floats(rows["line"])
    time = _floats(rows["time"].cast(pa.int64()))
    known = np.isfinite(step)
    top = int(np.argmax(np.where(known, step, -np.inf))) if known.any() else len(step) - 1
    timed = known & np.isfinite(time)
    distinct, first_time, last_time = _extremes(step[timed], time[timed])
    return Progress(
        rows=len(step),
        last_step=int(step[top]) if known.any() else None,
        last_event=int(rows["event_id"][top].as_py()) if len(step) else None,
        tracks={name: _track(line[part], step[part]) for name, part in by_source(rows, line)},
        distinct=distinct,
        first_time=first_time,
        last_time=last_time,
        stepped=bool(known.any()),
    )


def _track(line: Floats, step: Floats) -> Track:
    """Make the track of one source from its rows in the order of its lines."""
    known = np.isfinite(step)
    if not known.any():
        distinct = np.unique(line[np.isfinite(line)])
        return Track(line=line[:0], step=step[:0], distinct=distinct, last_line=distinct)
    distinct, _, last_line = _extremes(step[known], line[known])
    return Track(line=line[known], step=step[known], distinct=distinct, last_line=last_line)


def _extremes(key: Floats, value: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the distinct keys with the smallest and the largest value of each."""
    distinct, code = np.unique(key, return_inverse=True)
    low, high = np.full(len(distinct), np.inf), np.full(len(distinct), -np.inf)
    with np.errstate(invalid="ignore"):  # a source without lines has none to compare
        np.minimum.at(low, code, value)
        np.maximum.at(high, code, value)
    return distinct, low, high


def by_source(rows: pa.Table, line: Floats) -> list[tuple[str, npt.NDArray[np.int64]]]:
    """Return for each source its rows, in the order of its lines."""
    if not rows.num_rows:
        return []
    named = pa.array(rows["source"].cast(pa.string()).to_numpy(zero_copy_only=False)).dictionary_encode()
    code = named.indices.to_numpy(zero_copy_only=False)
    order = np.lexsort((line, code))
    ends = np.searchsorted(code[order], np.arange(len(named.dictionary)), side="right")
    return list(zip(named.dictionary.to_pylist(), np.split(order, ends[:-1]), strict=True))


def _floats(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=float)


class Clock:
    """Times of events that carry none: the last time that their source showed before them, else the first after."""

    def __init__(self, events: EventTable) -> None:
        table = events.table
        timed = table.filter(pc.and_(pc.is_valid(table["time"]), pc.is_valid(table["line"])))
        line, time = _floats(timed["line"]), _floats(timed["time"].cast(pa.int64()))
        self._known = {name: (line[part], time[part]) for name, part in by_source(timed, line)}

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

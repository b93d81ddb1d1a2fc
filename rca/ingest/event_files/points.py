"""The points of one event file in columns, in the order in which they were written, thinned where they are too many."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

MAX_POINTS = 1_000_000
"""Points kept of one file, about 90 bytes each in the event table: more than any curve is looked at with."""
_NEIGHBOURS = 4


class Place(NamedTuple):
    """Where in the run a record stands."""

    record: int
    """Number of the record, from 1."""
    wall_time: float
    """Seconds since the epoch, as written."""
    step: int


class Columns(NamedTuple):
    """Points in columns."""

    record: npt.NDArray[np.int64]
    """Number of the record, from 1."""
    wall_time: npt.NDArray[np.float64]
    """Seconds since the epoch, as written."""
    step: npt.NDArray[np.int64]
    code: npt.NDArray[np.int32]
    """Which series the point belongs to."""
    value: npt.NDArray[np.float64]
    note: npt.NDArray[np.object_]
    """JSON text on the point, or None."""

    def pick(self, index: npt.NDArray[np.int64]) -> Columns:
        """Return some of the points."""
        return Columns(
            self.record[index],
            self.wall_time[index],
            self.step[index],
            self.code[index],
            self.value[index],
            self.note[index],
        )


class Points:
    """Collects the points of a file block by block, in bounded memory."""

    def __init__(self) -> None:
        self.seen = 0
        """Points that were written, kept or not."""
        self._kept = 0
        self._chunks: list[Columns] = []
        self._single: list[tuple[int, float, int, int, float, str | None]] = []

    def add(self, place: Place, code: int, value: float, *, note: str | None = None) -> None:
        """Add one point of the block that `close_block` ends."""
        self._single.append((*place, code, value, note))

    def close_block(self, many: Columns) -> None:
        """Add many points, and among them, where their records stand, those that were added one by one."""
        if self._single:
            record, wall_time, step, code, value, note = zip(*self._single, strict=True)
            self._single = []
            notes = np.empty(len(note), object)
            notes[:] = note
            single = Columns(
                np.array(record, np.int64),
                np.array(wall_time, np.float64),
                np.array(step, np.int64),
                np.array(code, np.int32),
                np.array(value, np.float64),
                notes,
            )
            many = joined([many, single])
            many = many.pick(np.argsort(many.record, kind="stable"))
        self.seen += len(many.record)
        self._kept += len(many.record)
        self._chunks.append(many)
        if self._kept > 2 * MAX_POINTS:
            self._chunks = [_thinned(joined(self._chunks))]
            self._kept = len(self._chunks[0].record)

    def columns(self) -> Columns:
        """Return the points of each series together, in the order in which they were written."""
        held = joined(self._chunks)
        while len(held.record) > MAX_POINTS:
            thinner = _thinned(held)
            if len(thinner.record) == len(held.record):
                break
            held = thinner
        code = held.code.astype(np.int16) if not len(held.code) or held.code.max() < 1 << 15 else held.code
        return held.pick(np.argsort(code, kind="stable"))


def joined(parts: list[Columns]) -> Columns:
    """Return the points of all parts."""
    if len(parts) == 1:
        return parts[0]
    return Columns(*(np.concatenate(column) for column in zip(nothing(), *parts, strict=True)))


def nothing() -> Columns:
    """Return columns without points."""
    numbers = np.empty(0, np.int64)
    return Columns(numbers, np.empty(0), numbers, np.empty(0, np.int32), np.empty(0), np.empty(0, object))


def _thinned(held: Columns) -> Columns:
    """Return of every few neighbours of a series the largest and the smallest, and its first and its last point.

    A value that is no number counts as the largest, so that the first of them is never lost for long.
    """
    order = np.argsort(held.code, kind="stable")
    code, value = held.code[order], held.value[order]
    place = np.arange(len(order))
    begins = np.flatnonzero(np.diff(code, prepend=-1))
    within = place - np.repeat(begins, np.diff(begins, append=len(order)))
    starts = np.flatnonzero(within % _NEIGHBOURS == 0)
    group = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    value = np.where(np.isnan(value), np.inf, value)
    keep = within == 0
    keep[begins[1:] - 1] = True
    keep[-1:] = True
    for reduce in (np.maximum, np.minimum):
        extreme = np.flatnonzero(value == reduce.reduceat(value, starts)[group])
        first = np.diff(group[extreme], prepend=-1) != 0
        keep[extreme[first]] = True
    return held.pick(np.sort(order[keep]))

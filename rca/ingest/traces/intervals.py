"""Unions of time intervals and how much of a window they cover, in numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


class Intervals(NamedTuple):
    """Disjoint intervals in ascending order."""

    start: Floats
    end: Floats

    @property
    def total(self) -> float:
        """Summed length."""
        return float(np.sum(self.end - self.start))


def union(start: Floats, end: Floats) -> Intervals:
    """Merge intervals that overlap or touch; intervals that are empty or run backwards count for nothing."""
    keep = end > start
    start, end = start[keep], end[keep]
    if not len(start):
        return Intervals(start, end)
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    first = np.concatenate(([True], start[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return Intervals(start[first], reach[last])


def joined(one: Intervals, other: Intervals) -> Intervals:
    """Return the union of two unions."""
    return union(np.concatenate((one.start, other.start)), np.concatenate((one.end, other.end)))


def covered(intervals: Intervals, low: Floats, high: Floats) -> Floats:
    """Return for each window [low, high] the length that the intervals cover in it."""
    if not len(intervals.start):
        return np.zeros(len(low))
    return _up_to(intervals, high) - _up_to(intervals, low)


def _up_to(intervals: Intervals, place: Floats) -> Floats:
    """Return the covered length before each place."""
    lengths = intervals.end - intervals.start
    before = np.concatenate(([0.0], np.cumsum(lengths)))
    index = np.searchsorted(intervals.start, place, side="right")
    inside = np.clip(place - intervals.start[np.maximum(index - 1, 0)], 0, lengths[np.maximum(index - 1, 0)])
    return np.where(index > 0, before[np.maximum(index - 1, 0)] + inside, 0.0)

"""Which span of the host encloses which, in numpy: self times, and the operator at work at a given moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Whole = npt.NDArray[np.int64]

MAX_THREADS = 1000
"""Threads whose spans are nested, those with the most spans first; on further ones every span stands alone."""
MAX_DEPTH = 500


class Nesting(NamedTuple):
    """Spans by thread and start, each with the one directly around it."""

    order: Whole
    """Places of the spans in the arrays that were given, sorted by thread, start, and longest first."""
    bounds: dict[int, tuple[int, int]]
    """Thread -> its part of `order`."""
    start: Floats
    end: Floats
    """In the order of `order`."""
    parent: Whole
    """Place in `order` of the enclosing span, -1 where there is none."""

    def self_times(self) -> Floats:
        """Return the duration of each span less that of the spans directly inside it, in the order given."""
        own = self.end - self.start
        inside = np.flatnonzero(self.parent >= 0)
        above = self.parent[inside]
        # Clocks of two sources disagree by less than a microsecond, so a span may end a little after its parent.
        shared = np.minimum(self.end[inside], self.end[above]) - self.start[inside]
        own -= np.bincount(above, weights=shared, minlength=len(own))
        found = np.empty(len(own))
        found[self.order] = np.maximum(own, 0.0)
        return found

    def at(self, thread: Whole, time: Floats) -> Whole:
        """Return the place (in the arrays given) of the innermost span at each moment of each thread; -1 for none."""
        found = np.full(len(time), -1, dtype=np.int64)
        for owner, (low, high) in self.bounds.items():
            asked = np.flatnonzero(thread == owner)
            place = np.searchsorted(self.start[low:high], time[asked], side="right") - 1 + low
            place[place < low] = -1
            for _ in range(MAX_DEPTH):
                over = (place >= 0) & (self.end[np.maximum(place, 0)] <= time[asked])
                if not over.any():
                    break
                place[over] = self.parent[place[over]]
            else:
                place[:] = -1
            found[asked] = np.where(place >= 0, self.order[np.maximum(place, 0)], -1)
        return found


def nested(thread: Whole, start: Floats, end: Floats) -> Nesting:
    """Find for each span the one directly around it on its thread."""
    order = np.lexsort((-end, start, thread))
    begin, stop = start[order], end[order]
    owner = thread[order]
    edges = np.flatnonzero(np.diff(owner, prepend=owner[:1] - 1)) if len(owner) else np.empty(0, np.int64)
    sizes = np.diff(np.append(edges, len(owner)))
    parent = np.full(len(order), -1, dtype=np.int64)
    bounds = {}
    for index in np.argsort(-sizes, kind="stable")[:MAX_THREADS].tolist():
        low, high = int(edges[index]), int(edges[index] + sizes[index])
        bounds[int(owner[low])] = (low, high)
        if high - low > 1:
            above = _parents(begin[low:high], stop[low:high])
            parent[low:high] = np.where(above >= 0, above + low, -1)
    return Nesting(order, bounds, begin, stop, parent)


def _parents(start: Floats, end: Floats) -> Whole:
    """Return for each span of one thread, sorted, the place of the one around it.

    How deep a span lies is how many began before it less how many ended before it; the one around it is the last before
    it that lies one level higher.
    """
    lasting = np.flatnonzero(end > start)
    begin, stop = start[lasting], end[lasting]
    count = len(lasting)
    places = np.arange(count)
    depth = places - np.searchsorted(np.sort(stop), begin, side="right")
    grouped = np.argsort(depth, kind="stable")
    ranked = depth[grouped] * count + grouped
    before = np.searchsorted(ranked, (depth - 1) * count + places) - 1
    above = grouped[np.maximum(before, 0)]
    around = (before >= 0) & (depth[above] == depth - 1) & (stop[above] > begin)
    found = np.full(len(start), -1, dtype=np.int64)
    found[lasting] = np.where(around, lasting[above], -1)
    return found

"""The kernels, operators and collectives that took most of the time inside the steps of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rca.ingest.trace_columns import Columns
from rca.ingest.trace_names import Role
from rca.ingest.trace_steps import Windows

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Whole = npt.NDArray[np.int64]

MAX_NESTED = 400_000
"""Operators of which self times are computed; above that their full times are summed."""


class Total(NamedTuple):
    """All spans of one name inside the steps."""

    name: str
    category: str
    """kernel, copy, collective, runtime, operator."""
    duration: float
    """Microseconds; for operators without the operators they called."""
    calls: int


_GROUPS: tuple[tuple[str, tuple[Role, ...]], ...] = (
    ("kernel", (Role.KERNEL,)),
    ("copy", (Role.MEMCPY, Role.MEMSET)),
    ("collective", (Role.COMMUNICATION,)),
    ("runtime", (Role.RUNTIME,)),
    ("operator", (Role.CPU, Role.DATALOADER)),
)


def totals(columns: Columns, windows: Windows, *, most: int) -> list[Total]:
    """Return at most `most` names of each category, those with the longest total time first."""
    if not len(windows):
        return []
    of_device = columns.on_device & (windows.of(columns.start) >= 0)
    of_host = ~columns.on_device & (windows.of(columns.start, host=True) >= 0)
    found: list[Total] = []
    for category, roles in _GROUPS:
        where = np.flatnonzero((of_device | of_host) & np.isin(columns.role, roles))
        if not len(where):
            continue
        duration = columns.duration[where]
        if category == "operator" and len(where) <= MAX_NESTED:
            duration = self_times(columns.thread[where], columns.start[where], columns.end[where])
        size = len(columns.names)
        spent = np.bincount(columns.key[where], weights=duration, minlength=size)
        calls = np.bincount(columns.key[where], minlength=size)
        order = [key for key in np.argsort(-spent, kind="stable")[:most].tolist() if calls[key]]
        found += [Total(columns.names[key][1], category, float(spent[key]), int(calls[key])) for key in order]
    return found


def self_times(thread: Whole, start: Floats, end: Floats) -> Floats:
    """Return the duration of each span less that of the spans directly inside it on the same thread."""
    order = np.lexsort((-end, start, thread))
    own = (end - start).tolist()
    ends, owners = end.tolist(), thread.tolist()
    stack: list[int] = []
    for place, begins in zip(order.tolist(), start[order].tolist(), strict=True):
        while stack and (owners[stack[-1]] != owners[place] or ends[stack[-1]] <= begins):
            stack.pop()
        # Clocks of two sources disagree by less than a microsecond, so a span may end a little after its parent.
        if stack:
            parent = stack[-1]
            own[parent] -= min(ends[place], ends[parent]) - begins
        stack.append(place)
    found: Floats = np.maximum(np.array(own, dtype=np.float64), 0.0)
    return found

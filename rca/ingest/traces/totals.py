"""The kernels, operators and collectives that took most of the time inside the steps of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rca.ingest.traces.columns import Columns
from rca.ingest.traces.names import Role
from rca.ingest.traces.nesting import nested
from rca.ingest.traces.steps import Windows, launches

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Whole = npt.NDArray[np.int64]

MOST_SHAPES = 3
"""Input shapes kept of each operator."""


class Total(NamedTuple):
    """All spans of one name inside the steps."""

    name: str
    category: str
    """kernel, copy, collective, runtime, operator."""
    duration: float
    """Microseconds; for operators without the operators they called."""
    calls: int
    device: float | None = None
    """Microseconds that the devices worked on what an operator itself launched; None where none was launched at all."""
    shapes: tuple[tuple[str, int, float], ...] = ()
    """Heaviest input shapes of an operator: (shapes, calls, microseconds on the devices, else on the host)."""


_GROUPS: tuple[tuple[str, tuple[Role, ...]], ...] = (
    ("kernel", (Role.KERNEL,)),
    ("copy", (Role.MEMCPY, Role.MEMSET)),
    ("collective", (Role.COMMUNICATION,)),
    ("runtime", (Role.RUNTIME,)),
)


def totals(columns: Columns, windows: Windows, *, most: int) -> list[Total]:
    """Return at most `most` names of each category, those with the longest total time first.

    Of the operators those with the longest time on the devices are added.
    """
    if not len(windows):
        return []
    of_device = columns.on_device & (windows.of(columns.start) >= 0)
    of_host = ~columns.on_device & (windows.of(columns.start, host=True) >= 0)
    within = of_device | of_host
    found: list[Total] = []
    size = len(columns.names)
    for category, roles in _GROUPS:
        where = np.flatnonzero(within & np.isin(columns.role, roles))
        spent = np.bincount(columns.key[where], weights=columns.duration[where], minlength=size)
        calls = np.bincount(columns.key[where], minlength=size)
        order = [key for key in np.argsort(-spent, kind="stable")[:most].tolist() if calls[key]]
        found += [Total(columns.names[key][1], category, float(spent[key]), int(calls[key])) for key in order]
    return found + _operators(columns, of_host, most=most)


def _operators(columns: Columns, of_host: npt.NDArray[np.bool_], *, most: int) -> list[Total]:
    where = np.flatnonzero(of_host & np.isin(columns.role, (Role.CPU, Role.DATALOADER)))
    if not len(where):
        return []
    nesting = nested(columns.thread[where].astype(np.int64), columns.start[where], columns.end[where])
    own = nesting.self_times()
    key, size = columns.key[where], len(columns.names)
    call, kernel = launches(columns)
    own_work = columns.role[kernel] != Role.COMMUNICATION
    call, kernel = call[own_work], kernel[own_work]
    at = nesting.at(columns.thread[call].astype(np.int64), columns.start[call])
    inside = at >= 0
    device: Floats = np.asarray(
        np.bincount(at[inside], weights=columns.duration[kernel[inside]], minlength=len(where)), dtype=np.float64
    )
    spent = np.bincount(key, weights=own, minlength=size)
    worked = np.bincount(key, weights=device, minlength=size)
    calls = np.bincount(key, minlength=size)
    chosen = np.argsort(-spent, kind="stable")[:most].tolist()
    chosen += [item for item in np.argsort(-worked, kind="stable")[:most].tolist() if worked[item] > 0]
    found = []
    for item in dict.fromkeys(code for code in chosen if calls[code]):
        mine = np.flatnonzero(key == item)
        weight = device[mine] if worked[item] > 0 else own[mine]
        found.append(
            Total(
                columns.names[item][1],
                "operator",
                float(spent[item]),
                int(calls[item]),
                float(worked[item]) if len(call) else None,
                _shapes(columns, columns.shapes[where[mine]], weight),
            )
        )
    return found


def _shapes(columns: Columns, codes: npt.NDArray[np.int32], weight: Floats) -> tuple[tuple[str, int, float], ...]:
    """Return the input shapes with which most time was spent."""
    known, inverse, calls = np.unique(codes, return_inverse=True, return_counts=True)
    spent = np.bincount(inverse, weights=weight, minlength=len(known))
    heaviest = [place for place in np.argsort(-spent, kind="stable").tolist() if known[place]][:MOST_SHAPES]
    return tuple(
        (columns.shapes_of(int(known[place])), int(calls[place]), round(float(spent[place]), 3)) for place in heaviest
    )

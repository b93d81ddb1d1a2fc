"""The steps of a profiled loop: from their host annotation to the end of the last kernel they launched."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rca.ingest.traces.columns import Columns
from rca.ingest.traces.names import Role

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

SHORT_OF_KERNELS = 0.8
"""A last step with less than this share of the kernels of the one before was cut by the end of the recording
(torch-tb-profiler, event_parser._update_steps_duration)."""

LARGE_PART = 0.5
"""Share of a trace without steps that its operators must span to be its window; start-up and shut-down lie outside."""

_NUMBER = re.compile(r"ProfilerStep#(\d{1,15})")


class Windows(NamedTuple):
    """The steps of one trace, in time order."""

    number: tuple[int | None, ...]
    """Step numbers of the profiler; a single None when the trace names no step and is one window."""
    start: Floats
    end: Floats
    host_start: Floats
    host_end: Floats
    """The annotation on the host: devices work later than they are told to, so the window itself lags behind."""
    dropped: int = 0
    """Steps at the end whose kernels are missing."""

    def __len__(self) -> int:
        return len(self.number)

    @property
    def duration(self) -> Floats:
        """Microseconds."""
        return self.end - self.start

    def of(self, time: Floats, *, host: bool = False) -> npt.NDArray[np.int64]:
        """Return for each time the index of the window (of its host part) it lies in, -1 where it lies in none."""
        start, end = (self.host_start, self.host_end) if host else (self.start, self.end)
        index = np.searchsorted(start, time, side="right") - 1
        inside = (index >= 0) & (time < end[np.maximum(index, 0)])
        return np.where(inside, index, -1)


def find_steps(columns: Columns) -> Windows:
    """Return the step windows; the whole trace as one window where no step is annotated; none for an empty trace."""
    marks = np.flatnonzero(columns.role == Role.STEP)
    marks = marks[np.argsort(columns.start[marks], kind="stable")]
    if not len(marks):
        return _whole(columns)
    host_start, host_end = columns.start[marks], columns.end[marks]
    start, end = host_start.copy(), host_end.copy()
    names = [columns.names[key][1] for key in columns.key[marks].tolist()]
    matches = [_NUMBER.match(name) for name in names]
    numbers = tuple(int(match[1]) if match else None for match in matches)
    launched = _launched(columns, start, end)
    dropped = 0
    if launched.kernels.any():
        start, end = _stretched(start, end, launched)
        dropped = len(numbers) - _with_kernels(launched.kernels)
    keep = slice(0, len(numbers) - dropped)
    return Windows(numbers[keep], start[keep], end[keep], host_start[keep], host_end[keep], dropped)


def _whole(columns: Columns) -> Windows:
    """Return one window: from the first operator to the end of what was launched, as torch-tb-profiler has it.

    Where operators are but a small part of the trace, all of it is the window.
    """
    known = np.flatnonzero(columns.role < Role.STEP)
    if not len(known):
        none = np.empty(0)
        return Windows((), none, none, none, none)
    whole = np.array([columns.start[known].min()]), np.array([columns.end[known].max()])
    hosts = np.flatnonzero(np.isin(columns.role, (Role.CPU, Role.DATALOADER)))
    if len(hosts):
        host_start, host_end = np.array([columns.start[hosts].min()]), np.array([columns.end[hosts].max()])
        launched = _launched(columns, host_start, host_end)
        start, end = host_start.copy(), host_end.copy()
        if launched.kernels.any():
            start, end = _stretched(start, end, launched)
        if end[0] - start[0] >= LARGE_PART * (whole[1][0] - whole[0][0]):
            return Windows((None,), start, end, host_start, host_end)
    return Windows((None,), *whole, *whole)


class _Launched(NamedTuple):
    """What the calls inside each host step launched on the devices."""

    kernels: npt.NDArray[np.int64]
    last_end: Floats
    before: float
    """End of the last device work from before the first step's own."""


def _launched(columns: Columns, start: Floats, end: Floats) -> _Launched:
    nothing = _Launched(np.zeros(len(start), np.int64), np.full(len(start), -np.inf), -np.inf)
    calls, device = launches(columns)
    if not len(calls):
        return nothing
    step = np.searchsorted(start, columns.start[calls], side="right") - 1
    inside = (step >= 0) & (columns.end[calls] <= end[np.maximum(step, 0)])
    step, ours = step[inside], device[inside]
    count = np.bincount(step, minlength=len(start))
    last_end, first_start = np.full(len(start), -np.inf), np.full(len(start), np.inf)
    np.maximum.at(last_end, step, columns.end[ours])
    np.minimum.at(first_start, step, columns.start[ours])
    foreign = columns.on_device & (columns.end < first_start[0])
    foreign[ours] = False
    before = columns.end[foreign].max(initial=-np.inf) if np.isfinite(first_start[0]) else -np.inf
    return _Launched(count, last_end, float(before))


def launches(columns: Columns) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return pairs of places: a call of the runtime, and what it started on a device.

    A call may have started several (a graph); of several calls with one id the first counts.
    """
    device = np.flatnonzero(columns.on_device & (columns.correlation >= 0))
    calls = np.flatnonzero((columns.role == Role.RUNTIME) & (columns.correlation >= 0))
    if not len(device) or not len(calls):
        return calls[:0], device[:0]
    ids, first = np.unique(columns.correlation[calls], return_index=True)
    place = np.minimum(np.searchsorted(ids, columns.correlation[device]), len(ids) - 1)
    linked = ids[place] == columns.correlation[device]
    return calls[first[place[linked]]], device[linked]


def _stretched(start: Floats, end: Floats, launched: _Launched) -> tuple[Floats, Floats]:
    """Let each step end with its last kernel and begin where the one before ended."""
    previous = max(launched.before, start[0])
    for index in range(len(start)):
        start[index] = max(previous, start[index])
        previous = end[index] = max(end[index], launched.last_end[index], start[index])
    return start, end


def _with_kernels(count: npt.NDArray[np.int64]) -> int:
    """Return how many steps to keep: without the last ones that have no kernels, or clearly too few."""
    keep = int(np.flatnonzero(count)[-1]) + 1
    if keep > 1 and count[keep - 1] < SHORT_OF_KERNELS * count[keep - 2]:
        keep -= 1
    return keep

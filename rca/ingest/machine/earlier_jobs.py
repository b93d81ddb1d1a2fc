"""The machine's own records reach back to before the run: what they say of that time belongs to other jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_OF_MACHINE = ("kernel.", "nvidia.xid", "nvidia.sxid", "amdgpu.")
"""How names of signatures begin that only the kernel's log holds."""
_OF_RUN = pa.array(["log", "metric", "exception", "process"])
_MINUTE = 60_000_000
_BEFORE = 10 * _MINUTE
"""Microseconds before the first row of a run that still belong to it: the machine prepares the job."""
_NEAR = (2 * _MINUTE, 5 * _MINUTE)
"""Microseconds before and after a run within which a row of another zone counts as one of the run."""
_ZONES = np.arange(-14 * 4, 14 * 4 + 1) * 15 * _MINUTE
"""All differences that two clocks can have by their time zones."""


def left_aside(parts: Sequence[pa.Table], last: Mapping[str, int]) -> tuple[list[pa.Table], list[str]]:
    """Return the tables without what the kernel said before the run began, and a sentence for each source of such rows.

    `last` is the last time (microseconds) that each source prints. A record whose clock may run in another time zone
    is left as it is: only where it reaches into the run, or where no zone brings its rows near the run, is it early.
    """
    machine = _sources(parts, machine=True) - _sources(parts, machine=False)
    span = _span(parts, machine)
    if not machine or span is None:
        return list(parts), []
    kept: list[pa.Table] = []
    early: dict[str, int] = {}
    for part in parts:
        sources = np.asarray(part["source"].cast(pa.string()).to_pylist(), dtype=object)
        times = _times(part)
        drop = np.zeros(part.num_rows, dtype=bool)
        for name in machine & set(sources.tolist()):
            drop |= (sources == name) & _is_early(times, span, reaches=last.get(name, 0) >= span[0])
        for name in sources[drop].tolist():
            early[name] = early.get(name, 0) + 1
        kept.append(part.filter(pa.array(~drop)) if drop.any() else part)
    return kept, [
        f"{name}: {count:,} reports from before the run began were left aside; they belong to other jobs."
        for name, count in sorted(early.items())
    ]


def _is_early(times: npt.NDArray[np.int64], span: tuple[int, int], *, reaches: bool) -> npt.NDArray[np.bool_]:
    early = (times > 0) & (times < span[0] - _BEFORE)
    if reaches or not early.any():
        return early
    moved = times[:, None] + _ZONES[None, :]
    return early & ~((moved >= span[0] - _NEAR[0]) & (moved <= span[1] + _NEAR[1])).any(axis=1)


def _sources(parts: Sequence[pa.Table], *, machine: bool) -> set[str]:
    """Sources with log rows of the kernel, or with rows of the run that are none."""
    found: set[str] = set()
    for part in parts:
        names = part["name"].cast(pa.string())
        ours = pc.is_in(part["kind"].cast(pa.string()), value_set=_OF_RUN)
        # A pattern of a cause stands beside the signature of a line, whoever printed it.
        of_kernel = _begins(names, _OF_MACHINE if machine else (*_OF_MACHINE, "inline."))
        wanted = pc.and_(ours, of_kernel if machine else pc.invert(of_kernel))
        found |= set(part["source"].filter(wanted).cast(pa.string()).to_pylist())
    return found


def _begins(names: Any, prefixes: Sequence[str]) -> Any:
    found = pc.starts_with(names, prefixes[0])
    for prefix in prefixes[1:]:
        found = pc.or_(found, pc.starts_with(names, prefix))
    return found


def _span(parts: Sequence[pa.Table], machine: set[str]) -> tuple[int, int] | None:
    """First and last time of the run's own rows."""
    ends: list[int] = []
    for part in parts:
        own = pc.invert(pc.is_in(part["source"].cast(pa.string()), value_set=pa.array(sorted(machine), pa.string())))
        ours = pc.and_(own, pc.is_in(part["kind"].cast(pa.string()), value_set=_OF_RUN))
        times = _times(part.filter(ours))
        times = times[times > 0]
        if len(times):
            ends += [int(times.min()), int(times.max())]
    return (min(ends), max(ends)) if ends else None


def _times(part: pa.Table) -> npt.NDArray[np.int64]:
    """Times of rows in microseconds; 0 where there is none."""
    found: npt.NDArray[np.int64] = part["time"].cast(pa.int64()).fill_null(0).to_numpy()
    return found

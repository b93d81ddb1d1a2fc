"""The collectives of one rank, call by call, so that the same call can be found again in the traces of other ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rca.ingest.traces.columns import Columns
from rca.ingest.traces.names import Role
from rca.ingest.traces.steps import Windows, launches

MOST = 2000
"""Calls kept of one trace, the first ones."""

_RANKS = re.compile(r"\d{1,7}")


class Exchange(NamedTuple):
    """One collective on the device."""

    name: str
    """Name of its kernel up to its arguments; ranks that take part run the same one."""
    step: int | None
    """The step that launched it."""
    start: float
    duration: float
    """Microseconds."""
    ranks: tuple[int, ...]
    """Ranks of its group; empty where the trace does not tell."""


def exchanges(columns: Columns, windows: Windows) -> Iterator[Exchange]:
    """Yield the collectives that the marked steps launched, in the order of their start."""
    where = np.flatnonzero((columns.role == Role.COMMUNICATION) & columns.on_device)
    if not len(where) or not len(windows):
        return
    calls, device = launches(columns)
    launched = np.full(len(columns), np.nan)
    launched[device] = columns.start[calls]
    # Where the launch is not recorded, the step in which the kernel runs stands for it.
    step = np.where(
        np.isfinite(launched[where]), windows.of(launched[where], host=True), windows.of(columns.start[where])
    )
    where, step = where[step >= 0], step[step >= 0]
    order = np.argsort(columns.start[where], kind="stable")[:MOST]
    groups = {(start, duration): args.group for _, start, duration, args in columns.collectives if args.group}
    for place, index in zip(where[order].tolist(), step[order].tolist(), strict=True):
        start, duration = float(columns.start[place]), float(columns.duration[place])
        name = columns.names[columns.key[place]][1].split("(", 1)[0].strip()
        stated = groups.get((start, duration), "")
        ranks = tuple(int(item) for item in _RANKS.findall(stated[:20_000]))
        yield Exchange(name, windows.number[index], start, duration, ranks)

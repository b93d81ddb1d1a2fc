"""What a flight recorder kept of one process group on one rank, small enough to travel in one event.

Training repeats the same few calls, so a ring of 2,000 entries is a table of some dozen different calls and a list of
indexes into it, which packs to about a kilobyte. Ranks of a group are written as runs: `0-7`, `0-56:8`, `3,5`.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

MAX_PACKED = 16 * 1024**2
"""Bytes of JSON in one packed recording."""
MAX_RANKS = 1 << 20
"""A larger rank, or a larger group, is a damaged number."""

COMPLETED, STARTED, SCHEDULED, LEFT = "c", "s", "q", "r"
"""States of an entry; LEFT is given to backends that only tell that a call is over, finished or given up."""

Shapes = tuple[tuple[int, ...], ...]


class Call(NamedTuple):
    """One collective as it was called; equal calls from the same line of code are one."""

    op: str
    inputs: Shapes
    outputs: Shapes
    input_dtypes: tuple[str, ...]
    output_dtypes: tuple[str, ...]
    where: str
    """Innermost place outside the libraries, `train.py:41 in step`; empty where no stack was recorded."""


class Transfer(NamedTuple):
    """One send or receive; source and destination are numbers within the group."""

    sends: bool
    source: int
    destination: int
    numel: int
    dtype: str
    state: str
    where: str


class Recording(NamedTuple):
    """Entries of one process group on one rank, oldest first."""

    calls: tuple[Call, ...]
    seq: Sequence[int]
    """Sequence numbers of the collectives, mostly one range; coalesced calls share one and are one entry."""
    call: tuple[int, ...]
    """Index into `calls`, for each sequence number."""
    state: str
    """One letter for each sequence number."""
    transfers: tuple[Transfer, ...] = ()


def pack(recording: Recording) -> str:
    """Write a recording as text for the attributes of an event."""
    plain = {
        "calls": recording.calls,
        "seq": _runs(recording.seq),
        "call": recording.call,
        "state": recording.state,
        "transfers": recording.transfers,
    }
    return base64.b85encode(zlib.compress(json.dumps(plain, separators=(",", ":")).encode(), 6)).decode()


def unpack(text: str) -> Recording | None:
    """Read back what `pack` wrote; None for anything else."""
    try:
        engine = zlib.decompressobj()
        plain = json.loads(engine.decompress(base64.b85decode(text), MAX_PACKED))
        calls = tuple(
            Call(op, _shapes(i), _shapes(o), tuple(di), tuple(do), at) for op, i, o, di, do, at in plain["calls"]
        )
        runs = [range(first, last + 1) for first, last in plain["seq"]]
        if sum(len(run) for run in runs) != len(plain["call"]):
            return None
        seq = runs[0] if len(runs) == 1 else tuple(number for run in runs for number in run)
        found = Recording(
            calls, seq, tuple(plain["call"]), plain["state"], tuple(Transfer(*t) for t in plain["transfers"])
        )
    except (ValueError, TypeError, KeyError, OverflowError, zlib.error, binascii.Error, RecursionError):
        return None
    whole = len(found.call) == len(found.state)
    return found if whole and all(0 <= index < len(calls) for index in found.call) else None


def _shapes(plain: Sequence[Sequence[int]]) -> Shapes:
    return tuple(tuple(shape) for shape in plain)


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


def write_ranks(ranks: Sequence[int]) -> str:
    """Write the ranks of a group in their order, equal steps as one run."""
    parts: list[str] = []
    index = 0
    while index < len(ranks):
        end = index + 1
        step = ranks[end] - ranks[index] if end < len(ranks) else 0
        while step > 0 and end < len(ranks) and ranks[end] - ranks[end - 1] == step:
            end += 1
        if end - index >= 3:
            parts.append(f"{ranks[index]}-{ranks[end - 1]}" + (f":{step}" if step > 1 else ""))
            index = end
        else:
            parts.append(str(ranks[index]))
            index += 1
    return ",".join(parts)


def read_ranks(text: Any) -> tuple[int, ...]:
    """Read back what `write_ranks` wrote; empty for anything else."""
    ranks: list[int] = []
    for part in text.split(",") if isinstance(text, str) and text else ():
        ends, _, step = part.partition(":")
        first, _, last = ends.partition("-")
        if not all(word.isascii() and word.isdigit() and len(word) < 9 for word in (first, last or "0", step or "1")):
            return ()
        low, high, by = int(first), int(last or first), int(step or 1)
        if by < 1 or high >= MAX_RANKS or len(ranks) + (high - low) // by >= MAX_RANKS:
            return ()
        ranks.extend(range(low, high + 1, by))
    return tuple(ranks)

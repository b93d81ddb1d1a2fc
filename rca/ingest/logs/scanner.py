"""Many patterns over many bytes at once: which lines are worth a closer look, and which patterns say so."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from typing import Any, NamedTuple, Protocol

import numpy as np
import re2

from rca.ingest.logs.loosening import loosen
from rca.ingest.logs.pattern_database import compiled

_REPORTS = 400_000
"""Match reports taken from one block in one go; above it the block is halved."""
_BLOCK = 1 << 20
"""Bytes searched in one go: some patterns run over the whole of it before the first match is reported."""

_NEWLINE, _RETURN = 10, 13
_PATTERN_BITS = 20
_PATTERN_MASK = (1 << _PATTERN_BITS) - 1
"""Room for the number of a pattern below the number of its line."""


class Hit(NamedTuple):
    """One line, or one state of a progress bar that rewrites its line."""

    start: int
    end: int
    above: int
    """Newlines of the buffer in front of it."""
    patterns: frozenset[int]
    """Indexes of the patterns that may match here; each needs a confirmation on the message."""


@dataclass
class Tally:
    """Lines of one pattern that are only counted, because enough of them were looked at."""

    count: int = 0
    last: int = -1
    """Where the last one ended in the buffer, or -1."""


class Scanner(Protocol):
    """Finds candidate lines in a buffer."""

    def hits(self, buffer: bytes, counted: Mapping[int, Tally]) -> Iterator[Hit]:
        """Yield the lines on which a pattern may match, in order; patterns in `counted` are only counted."""


def scanner_for(patterns: Sequence[str]) -> Scanner:
    """Return the fastest scanner this machine can run: Hyperscan, else sets of RE2.

    Patterns are RE2 syntax and made for messages; they are loosened, because a line still carries its prefix here.
    """
    try:
        return _HyperscanScanner(patterns)
    except ImportError:
        return _SetScanner(*prepared(patterns))


def prepared(patterns: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the loosened patterns and the indexes of those to search; what matches nothing would match everywhere."""
    loose = [loosen(pattern) for pattern in patterns]
    return loose, [index for index, pattern in enumerate(loose) if re2.search(pattern, "") is None]


class _HyperscanScanner:
    """Hyperscan over whole buffers; patterns that it cannot express are searched for line by line with RE2."""

    def __init__(self, patterns: Sequence[str]) -> None:
        import hyperscan

        self._terminated = hyperscan.ScanTerminated
        self._database, others = compiled(patterns, prepared)
        left = {index: loosen(patterns[index]) for index in others}
        self._others = _SetScanner(left, others) if others else None

    def hits(self, buffer: bytes, counted: Mapping[int, Tally]) -> Iterator[Hit]:
        found = iter(()) if self._database is None else self._blocks(buffer, counted)
        if self._others is None:
            return found
        return _merge(found, self._others.hits(buffer, counted))

    def _blocks(self, buffer: bytes, counted: Mapping[int, Tally]) -> Iterator[Hit]:
        """Search blocks of whole lines; a block that reports too much is halved down to its lines."""
        pending = [(start, end) for start, end in _split(buffer, 0, len(buffer), _BLOCK)][::-1]
        above = 0
        while pending:
            start, end = pending.pop()
            reports = self._reports(buffer, start, end)
            if reports is None and len(halves := list(_split(buffer, start, end, max((end - start) // 2, 1)))) > 1:
                pending += halves[::-1]
                continue
            if reports is None:
                yield from self._one_line(buffer, start, end, counted, above=above)
            else:
                yield from _lines(buffer, start, end, reports, counted, above=above)
            above += newlines(buffer, start, end)

    def _reports(self, buffer: bytes, start: int, end: int) -> array[int] | None:
        """Return where matches of a block end, relative to it, each with its pattern; None where there are too many."""
        reports = array("q")
        keep = reports.append
        left = iter(range(_REPORTS))

        def report(pattern: int, _start: int, stop: int, _flags: int, _context: Any) -> bool | None:
            keep(stop << _PATTERN_BITS | pattern)
            return next(left, True) is True or None

        try:
            self._database.scan(memoryview(buffer)[start:end], match_event_handler=report)
        except self._terminated:
            return None
        return reports

    def _one_line(
        self, buffer: bytes, start: int, end: int, counted: Mapping[int, Tally], *, above: int
    ) -> Iterator[Hit]:
        """Search the states of one line, or the line, and keep only which patterns were found."""

        def report(pattern: int, _start: int, _end: int, _flags: int, context: set[int]) -> None:
            context.add(pattern)

        for state in re.finditer(rb"[^\r\n]+", buffer[start:end]):
            ids: set[int] = set()
            self._database.scan(state[0], match_event_handler=report, context=ids)
            for pattern in ids & counted.keys():
                counted[pattern].count += 1
                counted[pattern].last = start + state.end()
            if ids - counted.keys():
                yield Hit(start + state.start(), start + state.end(), above, frozenset(ids - counted.keys()))


def _split(buffer: bytes, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut a part of the buffer into blocks of whole lines, each of about `size` bytes or one line."""
    while start < end:
        stop = buffer.find(b"\n", min(start + size, end) - 1, end)
        stop = end if stop < 0 else stop + 1
        yield start, stop
        start = stop


class _SetScanner:
    """One RE2 set, asked line by line."""

    def __init__(self, patterns: Sequence[str] | Mapping[int, str], usable: Sequence[int]) -> None:
        self._set = re2.Set.SearchSet(_options())
        self._indexes = tuple(usable)
        for index in usable:
            self._set.Add(patterns[index].encode())
        self._set.Compile()

    def hits(self, buffer: bytes, counted: Mapping[int, Tally]) -> Iterator[Hit]:
        match = self._set.Match
        indexes = self._indexes
        start = above = 0
        for line in re.split(rb"[\n\r]", buffer):
            found = frozenset(indexes[item] for item in match(line) or ())
            for pattern in found & counted.keys():
                counted[pattern].count += 1
                counted[pattern].last = start + len(line)
            if found - counted.keys():
                yield Hit(start, start + len(line), above, frozenset(found - counted.keys()))
            start += len(line) + 1
            above += buffer[start - 1 : start] == b"\n"


def _options() -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.max_mem = 256 << 20
    return options


def _lines(
    buffer: bytes, start: int, end: int, reports: Sequence[int], counted: Mapping[int, Tally], *, above: int
) -> Iterator[Hit]:
    """Group the reports (end of match, relative to `start`, with its pattern) of a block by the line they end in.

    `above` are the newlines of the buffer in front of the block.
    """
    if not reports:
        return
    text = np.frombuffer(buffer, dtype=np.uint8, count=end - start, offset=start)
    rewritten = buffer.find(b"\r", start, end) >= 0
    breaks = np.flatnonzero((text == _NEWLINE) | (text == _RETURN) if rewritten else text == _NEWLINE)
    packed = np.asarray(reports)
    stops = packed >> _PATTERN_BITS
    lines = np.searchsorted(breaks, np.maximum(stops - 1, 0))
    found = np.unique(lines << _PATTERN_BITS | packed & _PATTERN_MASK)
    ids = found & _PATTERN_MASK
    if counted:
        only = np.isin(ids, list(counted))
        for pattern, count in zip(*np.unique(ids[only], return_counts=True), strict=True):
            tally = counted[int(pattern)]
            tally.count += int(count)
            tally.last = start + int(stops[packed & _PATTERN_MASK == pattern].max())
        found, ids = found[~only], ids[~only]
        if not len(found):
            return
    numbers = found >> _PATTERN_BITS
    firsts = np.flatnonzero(np.diff(numbers, prepend=-1))
    begins = np.concatenate(([0], breaks + 1))[numbers[firsts]] + start
    before = np.concatenate(([0], np.cumsum(text[breaks] == _NEWLINE))) if rewritten else np.arange(len(breaks) + 1)
    newlines = before[numbers[firsts]] + above
    ends = np.concatenate((breaks, [end - start]))[numbers[firsts]] + start
    kept: dict[bytes, frozenset[int]] = {}
    lasts = [*firsts[1:].tolist(), len(ids)]
    for begin, stop, line, one, other in zip(
        begins.tolist(), ends.tolist(), newlines.tolist(), firsts.tolist(), lasts, strict=True
    ):
        key = ids[one:other].tobytes()
        together = kept.get(key)
        if together is None:
            together = kept[key] = frozenset(ids[one:other].tolist())
        yield Hit(begin, stop, line, together)


def newlines(buffer: bytes, start: int = 0, end: int | None = None) -> int:
    """Return how many line ends a part of a buffer holds, four times as fast as `bytes.count` on lines of logs."""
    stop = len(buffer) if end is None else end
    return int(np.count_nonzero(np.frombuffer(buffer, dtype=np.uint8, count=stop - start, offset=start) == _NEWLINE))


def line_around(buffer: bytes, position: int) -> tuple[int, int]:
    """Return where the line, or the state of a rewritten line, around a position starts and ends."""
    start = buffer.rfind(b"\n", 0, position) + 1
    start = max(start, buffer.rfind(b"\r", start, position) + 1)
    newline = buffer.find(b"\n", position)
    newline = len(buffer) if newline < 0 else newline
    back = buffer.find(b"\r", position, newline)
    return start, newline if back < 0 else back


def _merge(first: Iterator[Hit], second: Iterator[Hit]) -> Iterator[Hit]:
    for place, hits in groupby(merge(first, second), key=lambda hit: (hit.start, hit.end, hit.above)):
        yield Hit(*place, frozenset().union(*(hit.patterns for hit in hits)))

"""One text source by line number: any line can be looked at again without the text ever being held as objects."""

from __future__ import annotations

import bisect
import re
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rca.ingest.interface import Limits, Source
from rca.ingest.logs.document import Prefix
from rca.ingest.logs.prefixes import ANSI, PrefixForm, PrefixParser, label_of
from rca.ingest.logs.scanner import newlines
from rca.ingest.logs.timestamps import Clock, first_full_date
from rca.ingest.logs.windows import Windows

_ANSI_BYTES = re.compile(ANSI.pattern.encode())
_LOCAL_RANK = re.compile(rb"rank\s{0,8}: (\d{1,6}) \(local_rank: (\d{1,5})\)")
_TAGGED_RANK = re.compile(rb"\[default(\d{1,5})\]:[^\n]{0,200}\[(?:PG [^\]\n]{0,60} )?Rank (\d{1,6})\]")
_TIME_LIKE = re.compile(rb"\d\d:\d\d:\d\d|1\d{9}")
_TIME_WITHIN = 800
"""Bytes of a line in which a prefix may hold its time."""
_BLOCK = 1 << 20
_CHUNK = 1 << 22
_BLOCKS_KEPT = 8
_PREFIXES_KEPT = 4096
_LOOK_BACK = 400
_LOOK_BACK_UNTIMED = 4
"""Lines searched backwards for the last printed time; few where the first lines carry none."""
_SAMPLE = 200
"""Lines at either end that show whether lines carry task numbers and times."""
_HEAD = 1 << 18
_RANK_WITHIN = 1 << 22
"""Bytes at the end in which a launcher tells which ranks the node has; it sums up when a job has failed."""
_LINES_TOLD = 100_000
"""Numbers of lines that blocks may set aside before those that were passed are dropped."""
_INT64 = 1 << 63
_NEWLINE, _RETURN = 10, 13


class Chunk(NamedTuple):
    """Some whole lines of a source, cleaned of colours and NUL bytes for matching."""

    text: bytes
    line: int
    """1-based number of the first line."""
    offset: int
    """Byte offset of the first line in the source."""
    starts: npt.NDArray[np.int64] | None
    """Where the lines start in the source, from `offset`; None where the text is the source byte for byte."""

    def place(self, position: int, line: int) -> int:
        """Return the byte offset in the source of a line that starts at a position of the text."""
        return self.offset + (position if self.starts is None else int(self.starts[line - self.line]))


class TextDocument:
    """A log, indexed sparsely: newlines are counted once and located when a line of their megabyte is asked for."""

    def __init__(self, source: Source, data: bytes | Windows, limits: Limits) -> None:
        self.path = source.path
        self.rank = source.rank
        self.host = source.host
        self._size = len(data)
        small = isinstance(data, Windows) and self._size <= _HEAD and data.gap == self._size
        self._data = data[:] if small else data
        self._limit = limits.line_bytes
        self._counts = self._count_lines()
        self._blocks: OrderedDict[int, np.ndarray] = OrderedDict()
        self._near: tuple[int, bytes, npt.NDArray[np.int64]] = (1, b"", np.zeros(1, dtype=np.int64))
        """The piece that is being read: number of its first line, bytes, and where its whole lines start."""
        anchor = first_full_date(bytes(data[:_HEAD])) or first_full_date(bytes(data[-_HEAD:]))
        self._clock = Clock(anchor, year_from=source.known_time)
        sample = self._sample()
        self._parser = PrefixParser(self._clock, label=label_of(sample), first_local=self.first_local_rank())
        self._prefixes: OrderedDict[int, Prefix] = OrderedDict()
        timed = any(self.parse(text, 0).time is not None for text in sample)
        self._look_back = _LOOK_BACK if timed else _LOOK_BACK_UNTIMED
        self._steps = array("q"), array("q")
        self._phases: tuple[list[int], list[str]] = ([], [])
        self._timed: tuple[list[int], list[int | None]] = ([], [])
        """Lines of which it is known which time was printed last."""
        self.silent: set[int] = set()
        """Lines inside a traceback: source code and file names, where a signature would be an accident."""
        self.claimed: set[int] = set()
        """Lines that a block has read although it does not own all lines up to its end."""
        self.told: set[tuple[str, str]] = set()
        """Settings that were already printed, as (name, text)."""
        self.cut_lines = 0

    def __len__(self) -> int:
        newlines = self._counts[-1]
        return newlines + (self._size > 0 and self._data[self._size - 1] != _NEWLINE)

    def raw(self, line: int) -> str:
        """Return the 1-based line: decoded, no colours, last state of a progress bar, cut at the line limit."""
        return self.decode(self._bytes(line))

    def _bytes(self, line: int) -> bytes:
        """The line without its end, or the last part of a bar longer than the line limit, or the first of another."""
        first, piece, starts = self._near
        if 0 <= line - first < len(starts) - 1:
            start, end = int(starts[line - first]), int(starts[line - first + 1]) - 1
            if end - start <= self._limit:
                return piece[start:end].removesuffix(b"\r")
        start, end = self.bounds(line)
        if end - start > self._limit:
            rewritten = self._data.find(b"\r", start, start + self._limit) >= 0
            start, end = (end - self._limit, end) if rewritten else (start, start + self._limit)
        return self._data[start:end]

    def decode(self, raw: bytes) -> str:
        """Return bytes of one line as text, as `raw` would."""
        text = raw.decode("utf-8", "replace")
        if "\r" in text:
            text = next((state for state in reversed(text.split("\r")) if state.strip()), "")
        return self.clean(text[: self._limit])

    @staticmethod
    def clean(text: str) -> str:
        """Drop colours, backspaces and NUL bytes."""
        if "\x1b" in text:
            text = ANSI.sub("", text)
        if "\x08" in text or "\x00" in text or "\ufeff" in text:
            text = text.replace("\x08", "").replace("\x00", "").replace("\ufeff", "")
        return text

    def prefix(self, line: int) -> Prefix:
        """Return the line with its prefix taken apart."""
        kept = self._prefixes.get(line)
        if kept is None:
            kept = self.parse(self.raw(line), line)
            self.remember(line, kept)
        return kept

    def remember(self, line: int, prefix: Prefix) -> None:
        """Keep the prefix of a whole line that was just parsed."""
        self._prefixes[line] = prefix
        if len(self._prefixes) > _PREFIXES_KEPT:
            self._prefixes.popitem(last=False)

    def form(self, text: str, prefix: Prefix) -> PrefixForm | None:
        """Return the form of the prefix of a line that was just parsed, if the next lines may have the same."""
        return self._parser.form(text, prefix)

    def times(self, form: PrefixForm, printed: Sequence[str] | None, lines: Sequence[int]) -> list[int | None] | None:
        """Return the times of lines of one form in order, or None where one of them is no time."""
        if printed is not None:
            times = self._parser.times(form, printed, lines)
            if times and times[-1] is not None:
                self.note_time(lines[-1], times[-1])
            return times
        # Lines of this form print no time, so what stands above them tells it.
        found: list[int | None] = []
        known = self.time(lines[0] - 1)
        before = lines[0]
        for line in lines:
            if line > before + 1 and (time := self._printed(before, line - 1)) is not None:
                known = time
            found.append(known)
            before = line
        self.note_time(before, known)
        return found

    def parse(self, text: str, line: int) -> Prefix:
        """Take the prefix of a text that stands at `line` apart."""
        return self._parser.parse(text, line)

    def offset(self, line: int) -> int:
        """Return the byte offset of the line in the decompressed source."""
        return self.place(0 if line <= 1 else self._newline(line - 2) + 1)

    def place(self, offset: int) -> int:
        """Return where a byte of what was read stands in the decompressed source."""
        return self._data.place(offset) if isinstance(self._data, Windows) else offset

    def step(self, line: int) -> int | None:
        """Return the last optimizer step printed at or before the line."""
        lines, steps = self._steps
        index = bisect.bisect_right(lines, line)
        return steps[index - 1] if index else None

    def note_step(self, line: int, step: int) -> None:
        """Remember that `step` was printed at `line`."""
        lines, steps = self._steps
        if abs(step) >= _INT64:
            return
        if lines and lines[-1] == line:
            steps[-1] = step
        elif not lines or lines[-1] < line:
            lines.append(line)
            steps.append(step)

    def note_steps(self, lines: Sequence[int], steps: Sequence[int | None]) -> None:
        """Remember the steps of many lines, given in order."""
        for line, step in zip(lines, steps, strict=True):
            if step is not None:
                self.note_step(line, step)

    def phase(self, line: int) -> str | None:
        """Return the phase of the job that was last told at or before the line."""
        lines, phases = self._phases
        index = bisect.bisect_right(lines, line)
        return phases[index - 1] if index else None

    def note_phase(self, line: int, phase: str) -> None:
        """Remember that the job was in `phase` at `line`."""
        lines, phases = self._phases
        if not phases or (phases[-1] != phase and lines[-1] <= line):
            lines.append(line)
            phases.append(phase)

    def time(self, line: int) -> int | None:
        """Return the last wall-clock time printed at or before the line."""
        lines, times = self._timed
        index = bisect.bisect_right(lines, line)
        known_line, known = (lines[index - 1], times[index - 1]) if index else (0, None)
        time = self._printed(known_line, line)
        self.note_time(line, known if time is None else time)
        return known if time is None else time

    def _printed(self, after: int, line: int) -> int | None:
        """The last time printed behind the line `after`, up to `line`; None where there is none in sight."""
        for candidate in range(line, max(after, line - self._look_back), -1):
            kept = self._prefixes.get(candidate)
            if kept is None:
                raw = self._bytes(candidate)
                if b"\r" not in raw and _TIME_LIKE.search(raw, 0, _TIME_WITHIN) is None:
                    continue
                time = self._parser.time(self.decode(raw), candidate)
            else:
                time = kept.time
            if time is not None:
                return time
        return None

    def time_range(self) -> tuple[int | None, int | None]:
        """Return the first and the last wall-clock time printed near the ends of the source."""
        count = len(self)
        first = next((time for line in range(1, min(count, _SAMPLE) + 1) if (time := self.prefix(line).time)), None)
        tail = range(count, max(0, count - _SAMPLE), -1)
        return first, next((time for line in tail if (time := self.prefix(line).time)), None)

    def note_time(self, line: int, time: int | None) -> None:
        """Remember that `time` was the last one printed at or before `line`."""
        lines, times = self._timed
        index = bisect.bisect_left(lines, line)
        if index < len(lines) and lines[index] == line:
            times[index] = time
        else:
            lines.insert(index, line)
            times.insert(index, time)

    def bounds(self, line: int) -> tuple[int, int]:
        """Return where the 1-based line starts and ends (without its newline) in the source."""
        start = 0 if line <= 1 else self._newline(line - 2) + 1
        end = self._newline(line - 1) if line - 1 < self._counts[-1] else self._size
        if end > start and self._data[end - 1] == _RETURN:
            end -= 1
        return start, end

    def first_local_rank(self) -> int:
        """Return the global rank of local rank 0 on the node that wrote the source, as far as it tells; else 0."""
        ends = [self._data[-_RANK_WITHIN:]]
        if self._size > _RANK_WITHIN:
            ends.insert(0, self._data[:_HEAD])
        for text in ends:
            place = text.find(b"(local_rank: ")
            found = _LOCAL_RANK.search(text, max(0, place - 60), place + 40) if place >= 0 else None
            if found and int(found[1]) >= int(found[2]):
                return int(found[1]) - int(found[2])
        tail = ends[-1][-_HEAD:]
        found = _TAGGED_RANK.search(tail) if b"[default" in tail else None
        return max(0, int(found[2]) - int(found[1])) if found else 0

    def chunks(self) -> Iterator[Chunk]:
        """Yield the whole source in pieces of whole lines, longer lines cut at the line limit."""
        position = 0
        line = 1
        gap = self._data.gap if isinstance(self._data, Windows) else self._size
        while position < self._size:
            end = min(position + _CHUNK, self._size)
            if position < gap < end:
                end = gap
            piece = self._data[position:end]
            follow = end
            if end < self._size and end != gap:
                cut = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
                if cut < 0:
                    newline = self._data.find(b"\n", end)
                    follow = self._size if newline < 0 else newline + 1
                    self.cut_lines += 1
                    yield self._chunk(piece[: self._limit], line, position)
                    line += newline >= 0
                    position = follow
                    continue
                piece = piece[: cut + 1]
                follow = position + cut + 1
            yield self._chunk(piece, line, position)
            line += newlines(piece)
            position = follow

    def _chunk(self, piece: bytes, line: int, offset: int) -> Chunk:
        text = piece
        if b"\x1b" in piece:
            text = _ANSI_BYTES.sub(b"", text)
        if b"\x00" in piece:
            text = text.replace(b"\x00", b"")
        if b"\x08" in piece:
            text = text.replace(b"\x08", b"")
        newlines = np.flatnonzero(np.frombuffer(piece, dtype=np.uint8) == _NEWLINE)
        starts = np.concatenate(([0], newlines + 1))
        self._near = line, piece, starts
        return Chunk(text, line, self.place(offset), None if len(text) == len(piece) else starts)

    def forget(self, line: int) -> None:
        """Drop what is known of lines before this one, where it is much; the last time stays known."""
        for told in (self.silent, self.claimed):
            if len(told) > _LINES_TOLD:
                told.difference_update([item for item in told if item < line])
        for timed in self._timed:
            del timed[:-1]

    def _count_lines(self) -> array[int]:
        """Newlines in front of each block, and all of them at the end."""
        counts = array("q", [0])
        for start in range(0, self._size, _BLOCK):
            counts.append(counts[-1] + newlines(self._data[start : start + _BLOCK]))
        return counts

    def _newline(self, index: int) -> int:
        """Position of the 0-based newline."""
        block = bisect.bisect_right(self._counts, index) - 1
        places = self._blocks.get(block)
        if places is None:
            start = block * _BLOCK
            piece = np.frombuffer(self._data[start : start + _BLOCK], dtype=np.uint8)
            places = np.flatnonzero(piece == _NEWLINE).astype(np.int32)
            self._blocks[block] = places
            if len(self._blocks) > _BLOCKS_KEPT:
                self._blocks.popitem(last=False)
        # A file that is written anew while it is read may have lost lines since they were counted.
        at = min(index - self._counts[block], len(places) - 1)
        return block * _BLOCK + (int(places[at]) if at >= 0 else 0)

    def _sample(self) -> list[str]:
        """Some of the first and the last lines, as far as they stand near the ends."""
        if self._size <= _HEAD:
            lines = self._data[:].split(b"\n")[: len(self)]
            near = lines if len(lines) <= 2 * _SAMPLE else lines[:_SAMPLE] + lines[-_SAMPLE - 1 :]
        else:
            first, last = self._data[:_HEAD].split(b"\n"), self._data[-_HEAD:].split(b"\n")
            # What stands at the border of the piece is a whole line only where it is all that there is.
            near = (first[:-1] or first)[:_SAMPLE] + (last[1:] or last)[-_SAMPLE:]
        return [self.decode(line.removesuffix(b"\r")) for line in near]

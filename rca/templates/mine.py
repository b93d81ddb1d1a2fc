"""Templates of lines, and of the logs of a run; several runs mined together share their templates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from rca.errors import UnreadableSource
from rca.ingest.interface import Limits, Source
from rca.ingest.logs.prefixes import PrefixParser, strip_colours
from rca.ingest.logs.timestamps import Clock
from rca.ingest.places.content import Buffer, open_content
from rca.templates.drain import Drain, Group
from rca.templates.masking import LONGEST, masked

RUN_BYTES = 512 << 20
"""Bytes looked at of one run, shared out evenly among its sources."""
SOURCE_BYTES = 64 << 20
"""Bytes looked at of one source at most: half from its start, half from its end, where failures stand."""
SHAPES = 50_000
"""Lines of one run that differ in more than digits; a log that has more says nothing twice."""
_CHUNK = 4 << 20
_DIGITS = b"0123456789"


@dataclass(frozen=True)
class Template:
    """What several lines say alike, and the first of them."""

    number: int
    """Equal for runs that were mined together."""
    text: str
    """The message without its prefix: `<num>`, `<path>`, ... for what was masked, `<*>` for other words that vary."""
    count: int
    example: str
    """The first line as it stands."""
    source: str = ""
    line: int = 0
    """1-based line of the first."""
    offset: int = 0
    """Byte offset of the first in the decompressed source."""
    last_line: int = 0
    """Line of the last one in the source that has the first."""


class Mined(NamedTuple):
    """The templates of one run."""

    templates: tuple[Template, ...]
    """In the order in which they were first said."""
    lines: int
    """Lines looked at, empty ones not counted."""
    left_out: int
    """Lines for which there was no room, or which stand in the middle of a log that is too long."""


@dataclass
class _Seen:
    """One group as one run said it."""

    group: Group
    count: int
    example: bytes
    source: str
    line: int
    offset: int
    last_line: int


@dataclass
class _Run:
    seen: dict[int, _Seen] = field(default_factory=dict)
    lines: int = 0
    left_out: int = 0
    shapes: int = 0


class Miner:
    """Gathers the templates of one or more runs in one tree, so that the same message has the same number in all."""

    def __init__(self) -> None:
        self._drain = Drain()
        self._shapes: dict[bytes, Group | None] = {}
        self._runs: dict[str, _Run] = {}

    def source(self, run: str, source: Source, limits: Limits | None = None, *, most: int = SOURCE_BYTES) -> None:
        """Add at most `most` bytes of the text of one source. Raises UnreadableSource when it cannot be opened."""
        with open_content(source, limits or Limits()) as content:
            for piece in _pieces(content.data, most):
                if piece.skipped:
                    self._of(run).left_out += piece.skipped
                self._chunk(run, source.path, piece.text, line=piece.line, offset=piece.offset)

    def lines(self, run: str, lines: Iterable[str], *, source: str = "") -> None:
        """Add single lines."""
        text = "\n".join(line.replace("\n", " ") for line in lines).encode("utf-8", "replace")
        self._chunk(run, source, text, line=1, offset=0)

    def mined(self, run: str) -> Mined:
        """Return what one run said."""
        found = self._of(run)
        return Mined(
            tuple(
                Template(
                    number=number,
                    text=seen.group.text,
                    count=seen.count,
                    example=_shown(seen.example),
                    source=seen.source,
                    line=seen.line,
                    offset=seen.offset,
                    last_line=seen.last_line,
                )
                for number, seen in found.seen.items()
            ),
            lines=found.lines,
            left_out=found.left_out,
        )

    def _of(self, run: str) -> _Run:
        return self._runs.setdefault(run, _Run())

    def _chunk(self, run: str, source: str, text: bytes, *, line: int, offset: int) -> None:
        """Add whole lines. Those that differ only in digits have one shape and are looked at once."""
        found = self._of(run)
        lines = text.split(b"\n")
        shapes = text.translate(None, _DIGITS).split(b"\n")
        first: dict[bytes, int] = {}
        counts: dict[bytes, int] = {}
        last: dict[bytes, int] = {}
        for index, shape in enumerate(shapes):
            if shape not in first:
                first[shape] = index
            counts[shape] = counts.get(shape, 0) + 1
            last[shape] = index
        starts: list[int] | None = None
        for shape, index in first.items():
            if not lines[index].strip():
                continue
            found.lines += counts[shape]
            group = self._group(found, shape, lines[index])
            if group is None:
                found.left_out += counts[shape]
                continue
            seen = found.seen.get(group.number)
            if seen is None:
                starts = starts or list(accumulate((len(item) + 1 for item in lines), initial=offset))
                found.seen[group.number] = _Seen(
                    group, counts[shape], _state(lines[index]), source, line + index, starts[index], line + last[shape]
                )
            else:
                seen.count += counts[shape]
                if seen.source == source:
                    seen.last_line = max(seen.last_line, line + last[shape])

    def _group(self, run: _Run, shape: bytes, raw: bytes) -> Group | None:
        key = shape[: 2 * LONGEST]
        if key in self._shapes:
            return self._shapes[key]
        if run.shapes >= SHAPES:
            return None
        run.shapes += 1
        group = self._shapes[key] = self._drain.add(message(_shown(raw)))
        return group


def message(text: str) -> str:
    """Return one line without the prefix of its logger, with what varies replaced by its kind."""
    return masked(PrefixParser(Clock()).parse(text[: 4 * LONGEST], 0).message)


def templates(lines: Iterable[str]) -> tuple[Template, ...]:
    """Return the templates of some lines in the order in which they first stand there."""
    miner = Miner()
    miner.lines("", lines)
    return miner.mined("").templates


def run_templates(sources: Sequence[Source], limits: Limits | None = None) -> Mined:
    """Return the templates of the logs of a run; pass the sources that hold text. One that is gone is left out."""
    return mined_together({"": sources}, limits)[""]


def mined_together(runs: Mapping[str, Sequence[Source]], limits: Limits | None = None) -> dict[str, Mined]:
    """Return the templates of several runs, mined in the order given; equal numbers mean the same message."""
    miner = Miner()
    for run, sources in runs.items():
        most = min(SOURCE_BYTES, max(_CHUNK, RUN_BYTES // max(1, len(sources))))
        for source in sources:
            with suppress(UnreadableSource):
                miner.source(run, source, limits, most=most)
    return {run: miner.mined(run) for run in runs}


class _Piece(NamedTuple):
    text: bytes
    line: int
    offset: int
    skipped: int
    """Lines left out in front of it."""


def _pieces(data: Buffer, most: int) -> Iterator[_Piece]:
    """Whole lines of the start and the end of a source, the middle of a very long one left out."""
    size = len(data)
    head = size if size <= most else _line_end(data, most // 2)
    tail = max(head, size if size <= most else _line_end(data, size - most // 2))
    line = 1
    for start, end in ((0, head), (tail, size)):
        skipped = 0
        if start == tail and tail > head:
            skipped = sum(data[at : min(at + _CHUNK, tail)].count(b"\n") for at in range(head, tail, _CHUNK))
            line += skipped
        position = start
        while position < end:
            stop = end if end - position <= _CHUNK else _line_end(data, position + _CHUNK, end)
            text = data[position:stop]
            yield _Piece(text.removesuffix(b"\n"), line, position, skipped)
            line += text.count(b"\n")
            position, skipped = stop, 0


def _line_end(data: Buffer, position: int, end: int | None = None) -> int:
    """Position behind the first newline at or after `position`; the next chunk when a line is longer than that."""
    end = len(data) if end is None else end
    newline = data.find(b"\n", position, min(position + _CHUNK, end))
    return newline + 1 if newline >= 0 else min(position + _CHUNK, end)


def _state(raw: bytes) -> bytes:
    """The last state of a progress bar that was rewritten in place, cut to what is looked at."""
    return raw.rstrip(b"\r").rsplit(b"\r", 1)[-1][: 4 * LONGEST]


def _shown(raw: bytes) -> str:
    return strip_colours(_state(raw).decode("utf-8", "replace").replace("\x00", ""))[:LONGEST].rstrip()

"""A bounded look into logs of any size: both ends, the surroundings of the failure, a sample, and every loud line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, NamedTuple

from rca.errors import UnreadableSource
from rca.ingest.interface import Source
from rca.ingest.logs.container_lines import record_in
from rca.ingest.logs.scanner import Scanner, scanner_for
from rca.ingest.places.discover import open_source
from rca.unexplained.marks import TROUBLE

_PIECE = 1 << 18
_LINE = 4096
"""Bytes of one line that are looked at."""
_SAMPLES = 16
"""Places of a long log, evenly apart, that show what it says all the time."""
_PACKED = (b"\x1f\x8b", b"BZ", b"\xfd7", b"\x28\xb5", b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Budget:
    """What one look may cost, all logs together; 100 MB cost about a third of a second (measured)."""

    sources: int = 64
    scanned: int = 128 << 20
    """Bytes searched for words of trouble."""
    sampled: int = 1 << 20
    """Bytes read line by line."""
    loud: int = 2000
    """Loud lines kept of one source: half of them its first, half its last."""


class Place(NamedTuple):
    """One line that was looked at."""

    offset: int
    """Byte offset in the decompressed source."""
    raw: bytes
    """The line, cut at what is looked at."""
    before: bytes
    """The line in front of it, where that was looked at too."""


@dataclass(frozen=True)
class Excerpt:
    """What was looked at of one source."""

    source: Source
    size: int
    """Decompressed bytes."""
    places: tuple[Place, ...] = field(repr=False, default=())
    """In the order in which they stand there."""
    head: bytes = b""
    """Its beginning, which may give the date."""


def excerpts(
    sources: Sequence[Source],
    sizes: Mapping[str, int],
    *,
    around: Mapping[str, int],
    told: Mapping[str, Sequence[int]],
    budget: Budget,
) -> tuple[list[Excerpt], int]:
    """Return what was looked at of each source, and how many sources there was no room or no way for.

    The most important source comes first. `sizes` holds decompressed bytes by path; `around` the offset at which a
    source shows the failure, `told` those of further lines to look at.
    """
    found: list[Excerpt] = []
    left = budget.scanned
    share = budget.sampled // max(1, min(len(sources), budget.sources))
    for source in sources[: budget.sources]:
        size = sizes.get(source.path, source.size)
        scanned = size <= left
        try:
            if not scanned and _is_packed(source):
                continue
            with open_source(source.file) as stream:
                end = stream.seek(0, 2)
                loud = _loud_lines(stream, end, budget.loud) if scanned else {}
                loud |= {offset: _line_at(stream, offset) for offset in told.get(source.path, ())}
                places = _places(stream, end, share=share, around=around.get(source.path), loud=loud)
                places = tuple(place._replace(raw=_said(place.raw), before=_said(place.before)) for place in places)
                stream.seek(0)
                head = stream.read(1 << 16)
        except (OSError, EOFError, ValueError, UnreadableSource):
            continue
        left -= size if scanned else 0
        found.append(Excerpt(source=source, size=end, places=places, head=head))
    return found, len(sources) - len(found)


def _said(raw: bytes) -> bytes:
    """Return what a line of a log says where a container runtime or a structured logger wrapped it."""
    if not raw.startswith(b"{"):
        return raw
    record = record_in(raw)
    return raw if record is None else " ".join(record.lines).rstrip().encode("utf-8", "replace")


def line_numbers(source: Source, offsets: Iterable[int], *, total: int, size: int) -> dict[int, int]:
    """Return the 1-based number of the line that starts at each offset; none for a source that is gone.

    `total` lines were counted in its `size` decompressed bytes: offsets of the second half are counted from the end.
    """
    wanted = sorted(set(offsets))
    middle = size // 2
    numbers: dict[int, int] = {}
    try:
        with open_source(source.file) as stream:
            at, line = 0, 1
            for offset in (offset for offset in wanted if offset < middle):
                line += _newlines(stream, at, offset)
                at = offset
                numbers[offset] = line
            at, line = size, total + 1
            for offset in reversed([offset for offset in wanted if offset >= middle]):
                line -= _newlines(stream, offset, at - (at == size))
                line -= at == size
                at = offset
                numbers[offset] = line
    except (OSError, EOFError, ValueError, UnreadableSource):
        return numbers
    return numbers


def _newlines(stream: IO[bytes], start: int, end: int) -> int:
    stream.seek(start)
    left, found = end - start, 0
    while left > 0 and (piece := stream.read(min(_PIECE, left))):
        found += piece.count(b"\n")
        left -= len(piece)
    return found


def _is_packed(source: Source) -> bool:
    with source.file.open("rb") as file:
        return file.read(2) in _PACKED


def _loud_lines(stream: IO[bytes], size: int, most: int) -> dict[int, bytes]:
    """Return the lines with words of trouble by their offset: the first ones, and of more the last ones."""
    scanner = scanner_for([TROUBLE])
    found: dict[int, bytes] = {}
    reached = 0
    for position, piece in _forward(stream):
        found.update(_hits(scanner, piece, position))
        reached = position + len(piece)
        if len(found) >= most // 2:
            break
    first = dict(list(found.items())[: most // 2])
    last = dict(list(found.items())[most // 2 :])
    for position, piece in _backward(stream, size, reached):
        last.update(_hits(scanner, piece, position))
        if len(last) >= most // 2:
            break
    return first | {offset: last[offset] for offset in sorted(last)[-(most // 2) :]}


def _hits(scanner: Scanner, piece: bytes, position: int) -> Iterator[tuple[int, bytes]]:
    for hit in scanner.hits(piece, {}):
        start = piece.rfind(b"\n", 0, hit.start) + 1
        yield position + start, piece[hit.start : hit.end]


def _forward(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the stream in pieces of whole lines; a line longer than a piece is cut."""
    stream.seek(0)
    position = 0
    rest = b""
    while read := stream.read(_PIECE):
        piece = rest + read
        cut = piece.rfind(b"\n") + 1 or len(piece)
        yield position, piece[:cut]
        position += cut
        rest = piece[cut:]
    if rest:
        yield position, rest


def _backward(stream: IO[bytes], end: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """Yield the stream from its end down to `stop` in the same way."""
    while end > stop:
        start = max(stop, end - _PIECE)
        stream.seek(start)
        piece = stream.read(end - start)
        cut = piece.find(b"\n") + 1 if start > stop else 0
        yield start + cut, piece[cut:]
        end = start + cut if cut < len(piece) else start


def _places(
    stream: IO[bytes], size: int, *, share: int, around: int | None, loud: Mapping[int, bytes]
) -> tuple[Place, ...]:
    found = {offset: Place(offset, raw[:_LINE], b"") for offset, raw in loud.items()}
    for start, end in _windows(size, share, around):
        before = b""
        for offset, raw in _lines(stream, start, end, size):
            if raw and not raw.isspace():
                found[offset] = Place(offset, _last_state(raw), before)
                before = raw
    return tuple(found[offset] for offset in sorted(found))


def _windows(size: int, share: int, around: int | None) -> list[tuple[int, int]]:
    """Parts of a source to read line by line, in order and apart: all of a small one."""
    if size <= share:
        return [(0, size)]
    wanted = [(0, share // 8), (size - 3 * share // 8, size)]
    if around is not None:
        wanted.append((max(0, around - share // 8), min(size, around + share // 8)))
    width = share // 4 // _SAMPLES
    wanted += [(start, start + width) for start in range(size // _SAMPLES, size - width, size // _SAMPLES)]
    joined: list[tuple[int, int]] = []
    for start, end in sorted(wanted):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _lines(stream: IO[bytes], start: int, end: int, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield the whole lines that start in a part of the stream, with their offsets."""
    stream.seek(start)
    data = stream.read(end - start)
    position = start
    if start > 0:
        first = data.find(b"\n") + 1
        if not first:
            return
        data, position = data[first:], start + first
    lines = data.split(b"\n")
    whole = lines if end >= size else lines[:-1]
    for raw in whole:
        yield position, raw
        position += len(raw) + 1


def _line_at(stream: IO[bytes], offset: int) -> bytes:
    stream.seek(offset)
    return stream.read(_LINE).split(b"\n", 1)[0]


def _last_state(raw: bytes) -> bytes:
    """Return what a line shows that a progress bar has rewritten, cut at what is looked at."""
    return raw[:_LINE] if b"\r" not in raw else raw.rstrip(b"\r").rsplit(b"\r", 1)[-1][:_LINE]

"""Lines as container runtimes and their command lines write them: Docker, containerd, kubectl, docker compose."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from rca.ingest.logs.log_records import Record, record_of, time_text
from rca.ingest.places.content import Buffer, give_back

_JOINED = 1 << 20
"""Bytes of one message that a runtime split and that are joined again."""
_LONGEST = 4 << 20
"""Bytes of one line that are looked at; a runtime cuts messages at 16 kB, clouds at 256 kB."""
_GIVE_BACK = 16 << 20
"""Bytes after which the pages of a mapped file are given back."""
CRI = re.compile(
    rb"(?P<time>(?:19|20)\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) (?P<stream>stdout|stderr) "
    rb"(?P<tag>[FP])(?::[\w:]{1,40})?(?: (?P<text>.*))?$"
)


class Line(NamedTuple):
    """One entry with its place in the file."""

    record: Record
    line: int
    offset: int


def parsed(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object that a line holds, or None."""
    text = line.strip().rstrip(b",")
    if not text.startswith(b"{"):
        return None
    try:
        item = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        # Python writes NaN where JSON has none.
        try:
            item = json.loads(text)
        except (ValueError, RecursionError):
            return None
    return item if isinstance(item, dict) else None


def record_in(line: bytes) -> Record | None:
    """Return what Docker's driver or a structured logger says on a line; None for any other object."""
    item = parsed(line)
    if item is None or not ("log" in item or "stream" in item or {"level", "levelname", "severity"} & item.keys()):
        return None
    return record_of(item)


def numbered(data: Buffer) -> Iterator[tuple[int, int, bytes]]:
    """Yield (1-based line, offset, bytes) of every line."""
    start, line, size = 0, 1, len(data)
    given = _GIVE_BACK
    while start < size:
        if start > given:
            give_back(data, start)
            given = start + _GIVE_BACK
        end = data.find(b"\n", start)
        end = size if end < 0 else end
        yield line, start, bytes(data[start : min(end, start + _LONGEST)]).rstrip(b"\r")
        start, line = end + 1, line + 1


def docker(data: Buffer) -> Iterator[Line]:
    """Docker's json-file driver: a message longer than 16 kB comes in pieces without a newline."""
    yield from _whole(_docker_pieces(data))


class _Piece(NamedTuple):
    stream: str
    text: str
    ends: bool
    time: str
    line: int
    offset: int


def _docker_pieces(data: Buffer) -> Iterator[_Piece]:
    for line, offset, text in numbered(data):
        item = parsed(text)
        said = None if item is None else item.get("log")
        if item is None or not isinstance(said, str):
            if text.strip():
                yield _Piece("", text.decode("utf-8", "replace"), ends=True, time="", line=line, offset=offset)
            continue
        time = time_text(item.get("time"))
        yield _Piece(str(item.get("stream")), said.rstrip("\r\n"), said.endswith("\n"), time, line, offset)


def _whole(pieces: Iterable[_Piece]) -> Iterator[Line]:
    """Join what a runtime split, each stream by itself; the line stands where its first piece does."""
    open_: dict[str, tuple[_Piece, list[str], int]] = {}
    for piece in pieces:
        first, texts, size = open_.pop(piece.stream, (piece, [], 0))
        texts.append(piece.text)
        size += len(piece.text)
        if piece.ends or size > _JOINED:
            yield Line(Record(("".join(texts),), time=first.time), first.line, first.offset)
        else:
            open_[piece.stream] = (first, texts, size)
    for first, texts, _size in open_.values():
        yield Line(Record(("".join(texts),), time=first.time), first.line, first.offset)


def cri(data: Buffer) -> Iterator[Line] | None:
    """containerd and CRI-O; the reader of text knows their prefix, so only split messages need joining."""
    if data.find(b" stdout P") < 0 and data.find(b" stderr P") < 0:
        return None
    return _whole(_cri_pieces(data))


def _cri_pieces(data: Buffer) -> Iterator[_Piece]:
    for line, offset, text in numbered(data):
        found = CRI.match(text)
        if found is None:
            if text.strip():
                yield _Piece("", text.decode("utf-8", "replace"), ends=True, time="", line=line, offset=offset)
            continue
        said = (found["text"] or b"").decode("utf-8", "replace")
        time = found["time"].decode()
        yield _Piece(found["stream"].decode(), said, found["tag"] == b"F", time, line, offset)


def tagged(data: Buffer, tag: re.Pattern[bytes]) -> Iterator[Line]:
    """`kubectl logs --prefix` and `docker compose logs`: every line starts with its pod or service."""
    for line, offset, text in numbered(data):
        found = tag.match(text)
        who = "" if found is None else found["who"].decode()
        said = text if found is None else text[found.end() :]
        yield Line(Record((said.decode("utf-8", "replace"),), host=who), line, offset)

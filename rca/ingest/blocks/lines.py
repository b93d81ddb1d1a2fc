"""Lines of a table inside a log: without logger prefixes, of one rank, claimed for the parser that read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rca.events import EventBuilder
from rca.ingest.logs.document import Document

MAX_TABLE = 2000
"""Lines of one table that are read."""


class TableLine(NamedTuple):
    """One line of a table."""

    number: int
    text: str
    """Without colours; the prefix of a logger is taken off where there is one, indentation stays."""


def table_line(document: Document, number: int, *, ruled: bool = False) -> str:
    """Return a line without the prefix of its logger or launcher.

    `ruled` is for tables drawn with `|`: the stroke at the start of a row is no separator of a prefix.
    """
    prefix, raw = document.prefix(number), document.raw(number)
    if prefix.rank is None and prefix.time is None and prefix.level is None:
        return raw
    head = raw.removesuffix(prefix.message).rstrip() if prefix.message else ""
    return raw[len(head) - 1 :] if ruled and head.endswith("|") else prefix.message


def table_lines(document: Document, start: int, *, most: int = MAX_TABLE, ruled: bool = False) -> Iterator[TableLine]:
    """Yield the lines from `start` on that the rank of the first line wrote; lines of other ranks are passed over."""
    if start > len(document):
        return
    rank = document.prefix(start).rank
    for number in range(start, min(start + most, len(document) + 1)):
        if number == start or document.prefix(number).rank == rank:
            yield TableLine(number, table_line(document, number, ruled=ruled))


def claim(document: Document, start: int, end: int) -> int:
    """Keep lines `start` to `end` (exclusive) from being read as metrics too; return `end`."""
    claimed = getattr(document, "claimed", None)
    if isinstance(claimed, set):
        claimed.update(range(start, end))
    return end


def place_of(document: Document, line: int) -> dict[str, Any]:
    """Return where a line stands, as columns of its events: line, byte offset, time and rank."""
    return {
        "line": line,
        "offset": document.offset(line),
        "time": document.time(line),
        "rank": document.prefix(line).rank,
    }


def add_system(
    out: EventBuilder,
    document: Document,
    line: int,
    *,
    name: str,
    attrs: Mapping[str, Any],
    text: str | None = None,
    value: float | None = None,
    kind: str = "system",
    severity: str | None = None,
    host: str | None = None,
    time: int | None = None,
) -> None:
    """Add one event about the system at its place in a log; captures without a value are left out."""
    out.add(
        kind=kind,
        name=name,
        line=line,
        offset=document.offset(line),
        time=document.time(line) if time is None else time,
        rank=document.prefix(line).rank,
        host=host or document.prefix(line).host,
        value=value,
        severity=severity,
        text=text,
        attrs={key: item for key, item in attrs.items() if item is not None},
    )

"""The journal of a host in its machine-readable forms: `journalctl -o json` and `-o export`, `dmesg --json`.

Each record becomes one line as the journal prints it for people, and the log reader reads those; line and offset of its
events point into the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from rca.errors import UnreadableSource
from rca.ingest.interface import IngestContext, Ingested, Ingestor, Source
from rca.ingest.logs.container_lines import numbered, parsed
from rca.ingest.logs.inner_text import InnerText
from rca.ingest.places.content import Buffer, give_back, open_content
from rca.ingest.tables.cells import whole

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LAST = 4_102_444_800_000_000
"""The year 2100 in microseconds: a journal claims no later time."""
_JSON, _EXPORT, _DMESG = b'"__REALTIME_TIMESTAMP"', b"__REALTIME_TIMESTAMP=", b'"dmesg": ['
_LONGEST = 16_384
_GIVE_BACK = 16 << 20
"""Bytes after which the pages of a mapped file are given back."""


class _Record(NamedTuple):
    """One message and where it stands."""

    line: int
    offset: int
    message: str
    micros: int | None = None
    host: str = ""
    program: str = ""
    pid: str = ""
    uptime: float | None = None


class JournalIngestor:
    """Reads a machine-readable journal with the reader of logs."""

    name = "journal"

    def __init__(self, text: Ingestor) -> None:
        self._text = text

    def accepts(self, source: Source, head: bytes) -> bool:  # noqa: ARG002 - the content decides, not the name
        """Take what has the field names of the journal, or the head of `dmesg --json`."""
        return _form(head) is not None

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read the messages. Raises UnreadableSource where there is none."""
        text = InnerText()
        with open_content(source, context.limits) as content:
            data, notes = content.data, content.warnings
            form = _form(bytes(data[:4096]))
            reader = _dmesg if form is _DMESG else _export if form is _EXPORT else _lines
            size, last = len(data), 0
            for record in reader(data):
                text.add(_shown(record), record.line, record.offset)
                last = record.line
        if not len(text):
            raise UnreadableSource(f"{source.path} is a journal without a message.")
        found = text.read(self._text, source, context)
        return replace(found, lines=last, bytes=size, warnings=(*notes, *found.warnings))


def _form(head: bytes) -> bytes | None:
    if _JSON in head and b'"MESSAGE"' in head and head.lstrip()[:1] == b"{":
        return _JSON
    if _EXPORT in head and (head.startswith(b"__") or b"\n__CURSOR=" in head):
        return _EXPORT
    return _DMESG if _DMESG in head[:200] and head.lstrip()[:1] == b"{" else None


def _lines(data: Buffer) -> Iterator[_Record]:
    """Yield the records of `journalctl -o json`: one object a line."""
    for number, offset, raw in numbered(data):
        item = parsed(raw)
        if item is not None and (record := _of_fields(item, number, offset)) is not None:
            yield record


def _of_fields(fields: dict[str, Any], line: int, offset: int) -> _Record | None:
    message = fields.get("MESSAGE")
    if isinstance(message, list):
        # A message that is no valid UTF-8 is written as the list of its bytes.
        good = all(isinstance(item, int) and 0 <= item < 256 for item in message)
        message = bytes(message).decode("utf-8", "replace") if good else None
    if not isinstance(message, str):
        return None
    stamp = whole(str(fields.get("_SOURCE_REALTIME_TIMESTAMP") or "")) or _micros(fields)
    return _Record(
        line,
        offset,
        message,
        stamp if stamp is not None and 0 < stamp < _LAST else None,
        host=str(fields.get("_HOSTNAME") or ""),
        program=str(fields.get("SYSLOG_IDENTIFIER") or fields.get("_COMM") or ""),
        pid=str(fields.get("_PID") or ""),
    )


def _micros(fields: dict[str, Any]) -> int | None:
    # Sixteen digits are one more than a cell may have.
    text = str(fields.get("__REALTIME_TIMESTAMP") or "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 16 else None


def _export(data: Buffer) -> Iterator[_Record]:
    """Yield the records of `journalctl -o export`: `NAME=value` lines, an empty line between records."""
    fields: dict[str, Any] = {}
    place = (1, 0)
    line, position = 1, 0
    given = 0
    while position < len(data):
        if position - given > _GIVE_BACK:
            give_back(data, position)
            given = position
        end = data.find(b"\n", position)
        end = len(data) if end < 0 else end
        raw = bytes(data[position:end])
        follow = end + 1
        name, sign, value = raw.partition(b"=")
        if not raw:
            if (record := _of_fields(fields, *place)) is not None:
                yield record
            fields = {}
        elif sign:
            if name == b"MESSAGE":
                place = (line, position)
            fields[name.decode("ascii", "replace")] = value.decode("utf-8", "replace")
        else:
            # A value with line breaks follows as its length in eight bytes, little-endian, and its bytes.
            length = int.from_bytes(data[follow : follow + 8], "little")
            start = follow + 8
            if length > len(data) - start:
                break
            if name == b"MESSAGE":
                place = (line, position)
            told = bytes(data[start : start + length])
            fields[name.decode("ascii", "replace")] = told.decode("utf-8", "replace")
            follow = start + length + 1
        line += bytes(data[position:follow]).count(b"\n")
        position = follow
    if (record := _of_fields(fields, *place)) is not None:
        yield record


def _dmesg(data: Buffer) -> Iterator[_Record]:
    """Yield the records of `dmesg --json`, which writes one field a line; a file that was cut off keeps its start."""
    uptime: float | None = None
    for number, offset, raw in numbered(data):
        field = raw.strip().rstrip(b",")
        for name in (b'"time":', b'"msg":'):
            at = field.find(name)
            if at < 0:
                continue
            try:
                value = json.loads(field[at + len(name) :].strip().rstrip(b",}"))
            except ValueError:
                continue
            if name == b'"time":' and isinstance(value, (int, float)):
                uptime = float(value)
            elif isinstance(value, str):
                yield _Record(number, offset, value, program="kernel", uptime=uptime)


def _shown(record: _Record) -> str:
    """Write a record as the journal shows it, on one line."""
    message = " ".join(record.message[:_LONGEST].splitlines())
    if record.uptime is not None and 0 <= record.uptime < 1e9:
        return f"[{record.uptime:12.6f}] {message}"
    if record.micros is None:
        return message
    time = (_EPOCH + timedelta(microseconds=record.micros)).strftime("%Y-%m-%dT%H:%M:%S.%f+00:00")
    host = "".join(record.host.split())[:60] or "localhost"
    program = "".join(record.program.split())[:40] or "unknown"
    if not record.host:
        return f"{time} {message}"
    pid = f"[{record.pid}]" if record.pid.isdigit() and len(record.pid) <= 8 and program != "kernel" else ""
    return f"{time} {host} {program}{pid or ('' if program == 'kernel' else '[0]')}: {message}"

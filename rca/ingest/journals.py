"""The journal of a host in its machine-readable forms: `journalctl -o json` and `-o export`, `dmesg --json`.

Each record becomes one line as the journal prints it for people, and the log reader reads those; line and offset of its
events point into the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rca.errors import UnreadableSource
from rca.ingest.cells import whole
from rca.ingest.inner_text import TextPlace
from rca.ingest.interface import IngestContext, Ingested, Ingestor, Source
from rca.ingest.structured import read_bounded

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LAST = 4_102_444_800_000_000
"""The year 2100 in microseconds: a journal claims no later time."""
_JSON, _EXPORT, _DMESG = b'"__REALTIME_TIMESTAMP"', b"__REALTIME_TIMESTAMP=", b'"dmesg": ['
_LONGEST = 16_384


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
        data, _cut, notes = read_bounded(source, context)
        form = _form(data[:4096])
        reader = _dmesg if form is _DMESG else _export if form is _EXPORT else _lines
        records = list(reader(data))
        if not records:
            raise UnreadableSource(f"{source.path} is a journal without a message.")
        text = "\n".join(_shown(record) for record in records).encode("utf-8", "replace")
        inner = TextPlace(PurePosixPath(source.path).name, text, source.file.parent)
        found = self._text.read(replace(source, file=inner, size=len(text)), context)
        return replace(
            found,
            events=_placed(found.events, records),
            lines=data.count(b"\n"),
            bytes=len(data),
            warnings=(*notes, *found.warnings),
        )


def _form(head: bytes) -> bytes | None:
    if _JSON in head and b'"MESSAGE"' in head and head.lstrip()[:1] == b"{":
        return _JSON
    if _EXPORT in head and (head.startswith(b"__") or b"\n__CURSOR=" in head):
        return _EXPORT
    return _DMESG if _DMESG in head[:200] and head.lstrip()[:1] == b"{" else None


def _lines(data: bytes) -> Iterator[_Record]:
    """Yield the records of `journalctl -o json`: one object a line."""
    offset = 0
    for number, raw in enumerate(data.split(b"\n"), start=1):
        if raw.strip():
            try:
                item = json.loads(raw)
            except (ValueError, RecursionError):
                item = None
            if isinstance(item, dict) and (record := _of_fields(item, number, offset)) is not None:
                yield record
        offset += len(raw) + 1


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


def _export(data: bytes) -> Iterator[_Record]:
    """Yield the records of `journalctl -o export`: `NAME=value` lines, an empty line between records."""
    fields: dict[str, Any] = {}
    place = (1, 0)
    line, position = 1, 0
    while position < len(data):
        end = data.find(b"\n", position)
        end = len(data) if end < 0 else end
        raw = data[position:end]
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
            fields[name.decode("ascii", "replace")] = data[start : start + length].decode("utf-8", "replace")
            follow = start + length + 1
        line += data.count(b"\n", position, min(follow, len(data)))
        position = follow
    if (record := _of_fields(fields, *place)) is not None:
        yield record


def _dmesg(data: bytes) -> Iterator[_Record]:
    """Yield the records of `dmesg --json`, which writes one field a line; a file that was cut off keeps its start."""
    offset = 0
    uptime: float | None = None
    for number, raw in enumerate(data.split(b"\n"), start=1):
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
        offset += len(raw) + 1


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


def _placed(events: pa.Table, records: list[_Record]) -> pa.Table:
    """Point the events at the records of the file instead of the lines that were made of them."""
    lines = np.array([0, *(record.line for record in records)], dtype=np.int64)
    offsets = np.array([0, *(record.offset for record in records)], dtype=np.int64)
    made = events["line"].fill_null(0).to_numpy().astype(np.int64)
    at = np.clip(made, 0, len(records))
    missing = events["line"].is_null().to_numpy()
    for name, places in (("line", lines), ("offset", offsets)):
        column = pa.array(places[at], type=pa.int64(), mask=missing)
        events = events.set_column(events.schema.get_field_index(name), events.schema.field(name), column)
    return events

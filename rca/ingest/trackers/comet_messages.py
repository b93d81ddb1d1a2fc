"""Messages of an offline experiment of Comet: one object a line, with metrics, parameters, packages and the output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Ingestor, Source
from rca.ingest.logs.container_lines import numbered, parsed
from rca.ingest.logs.inner_text import InnerText
from rca.ingest.logs.log_records import time_text
from rca.ingest.settings.config_rows import add_settings
from rca.ingest.tables.json_lines import add_records
from rca.ingest.tables.structured import plain_name, read_lines

_KINDS = (b'"type":"file_name"', b'"type":"metric_msg"', b'"type":"parameter_msg"', b'"type":"standard_output"')
_LONGEST = 64 * 1024
_PACKAGES = 2000


class CometIngestor:
    """Reads the messages; what the program printed is read like a log."""

    name = "comet messages"

    def __init__(self, text: Ingestor) -> None:
        self._text = text

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take JSON lines of payloads with a type that Comet gives them."""
        plain = head[:4096].replace(b": ", b":")
        return (
            plain_name(source.path).endswith((".json", ".jsonl"))
            and plain.startswith(b'{"payload":')
            and (any(kind in plain for kind in _KINDS) or b'"message_id":' in plain)
        )

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read every message. Raises UnreadableSource where no line holds one."""
        data, _cut, notes = read_lines(source, context)
        out = EventBuilder(source.path, rank=source.rank, host=source.host)
        rows: list[tuple[int, dict[str, Any]]] = []
        printed = _Printed()
        count = 0
        for line, offset, raw in numbered(data):
            item = parsed(raw)
            payload = item.get("payload") if item is not None else None
            if item is None or not isinstance(payload, dict):
                continue
            count += 1
            kind = item.get("type")
            if kind == "metric_msg" and isinstance(payload.get("metric"), dict):
                rows.extend((line, row) for row in _metric(payload))
            elif kind == "parameter_msg" and isinstance(payload.get("param"), dict):
                _add_parameter(out, payload["param"], line)
            elif kind == "standard_output" and isinstance(payload.get("output"), str):
                printed.add(payload, line, offset)
            elif isinstance(payload.get("installed_packages"), list):
                _add_packages(out, payload["installed_packages"], line)
        if not count:
            raise UnreadableSource(f"{source.path} holds no message of Comet.")
        warnings = add_records(out, rows) if rows else []
        tables = [out.build()]
        read = [text.read(self._text, source, context) for text in printed.texts()]
        tables += [part.events for part in read]
        times = [time for part in read for time in (part.first_time, part.last_time) if time is not None]
        return Ingested(
            events=pa.concat_tables(tables),
            lines=count,
            bytes=len(data),
            text=bool(read),
            first_time=min(times, default=None),
            last_time=max(times, default=None),
            warnings=(*notes, *warnings),
        )


def _metric(payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    metric = payload["metric"]
    if isinstance(metric.get("metricName"), str):
        found = {"timestamp": payload.get("local_timestamp"), "step": metric.get("step")}
        yield {**found, metric["metricName"][:200]: metric.get("metricValue")}


def _add_parameter(out: EventBuilder, parameter: dict[str, Any], line: int) -> None:
    name = parameter.get("paramName")
    # Comet counts its own steps as a parameter as well.
    if isinstance(name, str) and name and name not in {"curr_step", "curr_epoch"}:
        add_settings(out, {name[:200]: parameter.get("paramValue")}, role="training", line=line)


def _add_packages(out: EventBuilder, listed: list[Any], line: int) -> None:
    for item in listed[:_PACKAGES]:
        name, equal, version = str(item).partition("==")
        if equal and 0 < len(name) <= 100:
            out.add(kind="package", name=name.lower().replace("_", "-"), text=version[:60], line=line)


class _Printed:
    """What came out of the program, put together from its pieces, each stream by itself."""

    def __init__(self) -> None:
        self._open: dict[bool, tuple[str, str, int, int]] = {}
        self._text: dict[bool, InnerText] = {False: InnerText(), True: InnerText()}

    def add(self, payload: dict[str, Any], line: int, offset: int) -> None:
        stream = payload.get("stderr") is True
        before, time, first, start = self._open.pop(stream, ("", "", line, offset))
        time = time or time_text(payload.get("local_timestamp"))
        *whole, rest = (before + payload["output"]).split("\n")
        for said in whole:
            self._write(stream, said, time, first, start)
            first, start = line, offset
        if len(rest) > _LONGEST:
            self._write(stream, rest, time, first, start)
        elif rest:
            self._open[stream] = (rest, time, first, start)

    def _write(self, stream: bool, said: str, time: str, line: int, offset: int) -> None:
        self._text[stream].add(f"{time} {said}" if time else said, line, offset)

    def texts(self) -> list[InnerText]:
        """Return the texts of both streams that say anything."""
        for stream, (said, time, line, offset) in self._open.items():
            self._write(stream, said, time, line, offset)
        return [text for text in self._text.values() if len(text)]

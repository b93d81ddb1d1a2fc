"""Logs that a container runtime, a cloud or a structured logger wrapped line by line.

They are unwrapped first. What is inside passes the same search as a plain log: signatures, tracebacks, metrics, times.
Places stay those of the file. Lines of several pods or services in one file are read apart, so that their tracebacks
do not mix.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import re2

from rca.errors import UnreadableSource
from rca.ingest.blocks.json_requests import JsonRequestParser
from rca.ingest.interface import IngestContext, Ingested, Ingestor, Source
from rca.ingest.logs.container_lines import CRI, Line, cri, docker, numbered, parsed, tagged
from rca.ingest.logs.inner_text import InnerText
from rca.ingest.logs.log_records import Record, record_of
from rca.ingest.places.content import Buffer, open_content
from rca.ingest.tables.json_lines import is_log_record
from rca.ingest.tables.structured import MAX_STRUCTURED, decode, parse_json, plain_name

_STREAMS = 256
"""Pods, hosts or services of one file that are read apart; further ones are read together."""
_SAMPLE = 64
"""Entries that show whether a file tells the newest first."""
_ENDINGS = (".json", ".jsonl", ".ndjson", ".log", ".txt", ".out", ".err", ".stdout", ".stderr", "")
_POD = re.compile(rb"\[pod/(?P<who>[\w.-]{1,253})/[\w.-]{1,63}\] ?")
_SERVICE = re.compile(rb"(?P<who>[A-Za-z0-9][\w.-]{0,62}[-_]\d{1,4}) {1,40}\| ?")
_NUMBERED = re.compile(r"(^|[-_.])(\d{1,6})$")
_DOCKER = re.compile(rb'\{"log":"')
_EXPORTED = (
    b'"textPayload"',
    b'"jsonPayload"',
    b'"logStreamName"',
    b'"ingestionTime"',
    b'"nextForwardToken"',
    b'"resultType"',
)
"""Keys of cloud exports that are one JSON document."""
_KNOWN = (
    {"log", "stream"}, {"log", "kubernetes"}, {"log", "time"}, {"textPayload"},
    {"jsonPayload"}, {"message", "@timestamp"}, {"message", "logStreamName"}, {"message", "ingestionTime"},
    {"line", "timestamp"}, {"line", "labels"}, {"text", "record"},
)  # fmt: skip
"""Keys that only a wrapped log has together."""


class WrappedLogIngestor:
    """Reads container, cloud and structured logs through the reader of plain ones."""

    name = "wrapped log"

    def __init__(self, text: Ingestor) -> None:
        self._text = text

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take files whose first lines all have the form of one wrapping."""
        return _unwrapping(source, head) is not None

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Unwrap every line and read what is inside. Raises UnreadableSource where nothing is."""
        with open_content(source, context.limits) as content:
            size, notes = len(content.data), content.warnings
            unwrap = _unwrapping(source, bytes(content.data[:4096]))
            if unwrap is None:
                raise UnreadableSource(f"{source.path} is no log that something wrapped.")
            entries = unwrap(content.data)
            if entries is None:
                return self._text.read(source, context)
            texts, count, newest_first = _collected(entries, size)
        return self._joined(source, context, texts, size=size, lines=count, notes=notes, unordered=newest_first)

    def _joined(
        self,
        source: Source,
        context: IngestContext,
        texts: dict[str, InnerText],
        *,
        size: int,
        lines: int,
        notes: tuple[str, ...],
        unordered: bool,
    ) -> Ingested:
        if not texts:
            raise UnreadableSource(f"{source.path} holds no message in any of its entries.")
        parts = []
        ranks = _ranks(list(texts))
        for host, text in texts.items():
            known = replace(
                source,
                host=source.host or host or None,
                rank=ranks.get(host) if source.rank is None else source.rank,
            )
            parts.append(text.read(self._text, known, context))
        events = pa.concat_tables([part.events for part in parts])
        if unordered:
            events = _without_lines(events)
        times = [time for part in parts for time in (part.first_time, part.last_time) if time is not None]
        warnings = dict.fromkeys(warning for part in parts for warning in part.warnings)
        return Ingested(
            events=events,
            lines=lines,
            bytes=size,
            text=True,
            first_time=min(times, default=None),
            last_time=max(times, default=None),
            warnings=(*notes, *warnings),
        )


def _ranks(hosts: list[str]) -> dict[str, int]:
    """Return the rank that the name of each pod or service counts, where all of them count and none twice.

    Operators of training jobs number the workers from nought, behind a master where there is one.
    """
    found = {host: int(number[2]) for host in hosts if (number := _NUMBERED.search(host))}
    if len(hosts) < 2 or len(found) != len(hosts):
        return {}
    masters = [host for host in hosts if "master" in host or "launcher" in host]
    if len(masters) == 1:
        found = {host: 0 if host in masters else number + 1 for host, number in found.items()}
    ranks = sorted(found.values())
    return found if ranks[0] in {0, 1} and len(set(ranks)) == len(ranks) and ranks[-1] < 2 * len(ranks) else {}


def _without_lines(events: pa.Table) -> pa.Table:
    """Leave out the lines of metrics in a file that tells the newest first: a series is ordered by its lines."""
    metric = pc.equal(events["kind"].cast(pa.string()), "metric")
    lines = pc.if_else(metric, pa.scalar(None, type=pa.int64()), events["line"])
    return events.set_column(events.schema.get_field_index("line"), events.schema.field("line"), lines)


def _collected(entries: Iterator[Line], size: int) -> tuple[dict[str, InnerText], int, bool]:
    """Write the entries of each origin as a text, oldest first."""
    start = list(islice(entries, _SAMPLE))
    times = [entry.record.time for entry in start if entry.record.time]
    newest_first = size <= MAX_STRUCTURED and len(times) > 1 and times[0] > times[-1] and times == sorted(times)[::-1]
    ordered: Iterable[Line] = reversed([*start, *entries]) if newest_first else chain(start, entries)
    texts: dict[str, InnerText] = {}
    count = 0
    for outer, line, offset in ordered:
        count += 1
        record = outer
        if len(outer.lines) == 1 and outer.lines[0][:1] == "{" and outer.time + outer.host:
            # A program that logs objects, in a container whose runtime wraps what it prints.
            inner = _said(outer.lines[0], outer.lines[0].encode())
            record = inner._replace(time=inner.time or outer.time, host=outer.host or inner.host)
        host = record.host if record.host in texts or len(texts) < _STREAMS else ""
        text = texts.get(host)
        if text is None:
            text = texts[host] = InnerText()
        before = "" if record.rank is None else f"[rank{record.rank}]: "
        before += f"{record.time} " if record.time else ""
        # Blanks behind a level would not count as the indentation of a line, so only the first one carries it.
        level = f"{record.level}: " if record.level else ""
        for said in record.lines:
            text.add(before + level + said, line, offset)
            level = ""
        if len(record.lines) > 1:
            # The end of an entry ends the message of its traceback.
            text.add(before, line, offset)
    return texts, count, newest_first


_REQUEST = re2.compile(JsonRequestParser.triggers[0])
Unwrap = Callable[[Buffer], "Iterator[Line] | None"]


def _unwrapping(source: Source, head: bytes) -> Unwrap | None:
    """Return how the entries of a file are read; None where it is no wrapped log."""
    name = plain_name(source.path)
    if (
        not name.endswith(_ENDINGS[:-1])
        and "." in name.rsplit("/", 1)[-1]
        and not re.search(r"\.(?:log|out|err)\.", name)
    ):
        return None
    lines = [line for line in head.split(b"\n") if line.strip()]
    whole = lines if head.endswith(b"\n") or len(head) < 4096 else lines[:-1]
    if not lines:
        return None
    first = lines[0].lstrip(b"\xef\xbb\xbf ")
    if CRI.match(first):
        return cri
    if all(_POD.match(line) for line in lines[:20]):
        return lambda data: tagged(data, _POD)
    if len(whole) > 2 and all(_SERVICE.match(line) for line in whole[:20]):
        return lambda data: tagged(data, _SERVICE)
    if _DOCKER.match(first):
        return docker
    if first[:1] == b"{" and _are_records(whole):
        return _structured
    if first[:1] in b"{[" and name.endswith((".json", ".log", ".txt")) and any(mark in head for mark in _EXPORTED):
        return lambda data: _exported(data, what=source.path)
    return None


def _are_records(lines: list[bytes]) -> bool:
    """Whether most of the first lines are records of a logger."""
    found = [item for line in lines[:8] if (item := parsed(line)) is not None]
    known = [item for item in found if _is_record(item)]
    return len(known) * 2 > len(lines[:8]) and any(record_of(item) is not None for item in known)


def _is_record(item: dict[str, Any]) -> bool:
    return is_log_record(item) or any(keys <= item.keys() for keys in _KNOWN)


def _said(text: str, raw: bytes) -> Record:
    """Return what a line of a structured logger says; what accounts for a request is read as the object it is."""
    item = parsed(raw) if text.lstrip()[:1] == "{" else None
    record = record_of(item) if item is not None and _is_record(item) and not _REQUEST.search(text) else None
    return Record((text,)) if record is None else record


def _structured(data: Buffer) -> Iterator[Line]:
    """Records of a logger; what is printed in between is kept as it stands."""
    for line, offset, text in numbered(data):
        if text.strip():
            yield Line(_said(text.decode("utf-8", "replace"), text), line, offset)


def _exported(data: Buffer, *, what: str) -> Iterator[Line]:
    """One JSON document: Cloud Logging, CloudWatch or a Loki query."""
    if len(data) > MAX_STRUCTURED:
        raise UnreadableSource(
            f"{what} is one JSON document of more than {MAX_STRUCTURED:,} bytes; export it as lines."
        )
    document = parse_json(decode(bytes(data)), what=what)
    for item in _entries(document):
        record = record_of(item)
        if record is not None:
            yield Line(record, 1, 0)


def _entries(document: Any) -> Iterator[dict[str, Any]]:
    """Yield the entries of an export."""
    if isinstance(document, list):
        yield from (item for item in document if isinstance(item, dict))
        return
    if not isinstance(document, dict):
        return
    for key in ("events", "entries"):
        if isinstance(document.get(key), list):
            yield from (item for item in document[key] if isinstance(item, dict))
            return
    data = document.get("data")
    result = data.get("result") if isinstance(data, dict) else None
    for stream in result if isinstance(result, list) else []:
        if not isinstance(stream, dict) or not isinstance(stream.get("values"), list):
            continue
        labels = stream.get("stream")
        for pair in stream["values"]:
            if isinstance(pair, list) and len(pair) >= 2:
                yield {"time": pair[0], "line": pair[1], "stream": labels}

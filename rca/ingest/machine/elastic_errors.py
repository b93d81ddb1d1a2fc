"""The error.json that torchelastic's `@record` writes for a worker that raised: what, where and when."""

from __future__ import annotations

from typing import Any

from rca.errors import UnreadableSource
from rca.ingest.interface import IngestContext, Ingested, Ingestor, Source
from rca.ingest.logs.inner_text import InnerText
from rca.ingest.logs.log_records import time_text
from rca.ingest.tables.structured import MAX_SETTINGS_FILE, decode, parse_json, plain_name, read_whole

_LINES = 2000
"""Lines of one call stack; a recursion that ran away has a thousand."""
_MESSAGE = b'{"message":'


class ElasticErrorIngestor:
    """Reads the traceback like one in a log, at the second that the file states."""

    name = "torchelastic error"

    def __init__(self, text: Ingestor) -> None:
        self._text = text

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take JSON with the call stack of a worker, and what is called error.json and begins with a message."""
        start = head.lstrip()
        named = plain_name(source.path).endswith("error.json") and start.replace(b" ", b"").startswith(_MESSAGE)
        return start[:1] == b"{" and (b'"py_callstack"' in head or named)

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read the error. Raises UnreadableSource where the file is broken or states none."""
        data, _cut, notes = read_whole(source, context, MAX_SETTINGS_FILE)
        document = parse_json(decode(data), what=source.path)
        stack, time = _said(document)
        if not stack:
            raise UnreadableSource(f"{source.path} holds neither a message nor a call stack.")
        text = InnerText()
        before = f"{time} " if time else ""
        for line in stack[:_LINES]:
            text.add(before + line, 1, 0)
        read = text.read(self._text, source, context)
        return Ingested(
            events=read.events,
            lines=data.count(b"\n") + 1,
            bytes=len(data),
            text=True,
            first_time=read.first_time,
            last_time=read.last_time,
            warnings=(*notes, *read.warnings),
        )


def _said(document: Any) -> tuple[list[str], str]:
    """Return the lines of the traceback, or of the message where there is none, and the time."""
    outer = document if isinstance(document, dict) else {}
    message = outer.get("message")
    # Older versions, and trainers that write the file themselves, put the message in as plain text.
    inner = message if isinstance(message, dict) else outer
    extra = inner.get("extraInfo")
    extra = extra if isinstance(extra, dict) else inner
    stack = extra.get("py_callstack")
    time = next((found for holder in (extra, inner, outer) if (found := time_text(holder.get("timestamp")))), "")
    text = stack if isinstance(stack, str) and stack.strip() else inner.get("message")
    return text.rstrip().splitlines() if isinstance(text, str) else [], time

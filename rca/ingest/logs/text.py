"""Logs: one pass over the bytes, a closer look at the few lines that say something."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from rca.ingest.file_names import is_code_name, is_log_name
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.logs.document import BlockParser
from rca.ingest.logs.line_search import line_search
from rca.ingest.logs.text_document import TextDocument
from rca.ingest.logs.text_reading import Reading
from rca.ingest.logs.windows import open_windows

_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\v\b\x1b\0"))
_BINARY_SHARE = 0.3
"""Share of bytes that no text has, above which a file is not text; logs with a few broken bytes stay far below."""


class TextIngestor:
    """Log text of any kind; reads whatever no other reader claims."""

    name = "log"

    def __init__(self, blocks: Sequence[BlockParser], *, after_metrics: Sequence[BlockParser] = ()) -> None:
        self._blocks = tuple(blocks)
        self._after_metrics = tuple(after_metrics)

    def accepts(self, source: Source, head: bytes) -> bool:
        """Say whether the file is text that a program wrote."""
        if is_code_name(source.path):
            return False
        if head.startswith(_WIDE):
            return True
        # A crash of the machine, or a rotation under a running job, leaves NUL bytes before or after the text.
        return is_text(head.strip(b"\0") if is_log_name(source.path) else head)

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read a log. Raises UnreadableSource when the file cannot be opened."""
        engine = line_search(context.signatures, self._blocks, self._after_metrics)
        with open_windows(source, context.limits) as opened:
            document = TextDocument(source, opened.data, context.limits)
            reading = Reading(source, context, document, engine)
            for chunk in document.chunks():
                if context.told is not None:
                    context.told(chunk.offset)
                reading.read(chunk)
                document.forget(chunk.line)
            return reading.finish(len(opened.data), [*opened.warnings, *opened.data.problems()])


def is_text(head: bytes) -> bool:
    """Say whether bytes look like text of any encoding that keeps ASCII."""
    if not head:
        return True
    text = head.decode("utf-8", "replace")
    odd = text.count("\ufffd") + len(head) - len(head.translate(None, _CONTROLS))
    return odd <= _BINARY_SHARE * len(text) and head.count(0) <= 0.1 * len(head)

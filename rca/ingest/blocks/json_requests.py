"""Lines of a structured logger that account for one request: an object with lengths, times, a status, an answer."""

from __future__ import annotations

import json

from rca.events import EventBuilder
from rca.ingest.blocks.lines import claim
from rca.ingest.blocks.request_lines import add_request
from rca.ingest.logs.document import Document
from rca.ingest.tables.cells import number
from rca.ingest.tables.structured import flatten
from rca.ingest.weights.generated_text import generation_columns

_KEYS = (
    "prompt_tokens|completion_tokens|input_tokens|output_tokens|new_tokens|generated_tokens|prompt_eval_count|eval_count|"
    "tokens_in|tokens_out|finish_reason|done_reason|latency_ms|latency_s|latency|duration_ms|duration_s|total_ms|"
    "elapsed_ms|total_duration_ms|e2e_ms|ttft_ms|ttft_s|queue_ms|queue_s|tpot_ms|itl_ms|status_code|http_status|status"
)
_NAMES = frozenset(_KEYS.split("|"))
_COMMON = {"status_code": "status", "http_status": "status", "tokens_in": "prompt_tokens", "tokens_out": "new_tokens"}
_LABELS = ("model", "variant", "backend", "deployment", "endpoint")
_MOST_FIELDS = 64
_LABEL = 80


class JsonRequestParser:
    """Adds the figures of one request under the names that request files have."""

    name = "logged request"
    triggers: tuple[str, ...] = (rf'^\s*\{{.*"(?:{_KEYS})"\s*:\s*(?:[0-9]|")',)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read one object; return `line` where it holds fewer than two figures of a request."""
        try:
            record = json.loads(document.raw(line))
        except (ValueError, RecursionError):
            return line
        if not isinstance(record, dict):
            return line
        row = dict(flatten(record, limit=_MOST_FIELDS))
        found = {key.rsplit(".", 1)[-1]: value for key, item in row.items() if (value := number(item)) is not None}
        found = {_COMMON.get(name, name): value for name, value in found.items() if name in _NAMES}
        found |= {
            name: values[0]
            for name, values in generation_columns({key: [item] for key, item in row.items()}).items()
            if values[0] is not None
        }
        if len(found) < 2:
            return line
        attrs = {name: str(row[name])[:_LABEL] for name in _LABELS if isinstance(row.get(name), str)}
        add_request(out, document, line, found, attrs=attrs or None)
        return claim(document, line, line + 1)

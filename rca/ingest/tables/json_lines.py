"""JSON lines: metric histories, request logs, samples; one object a line, keys may differ from line to line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.tables.metric_table import add_metrics
from rca.ingest.tables.sampled_lines import read_sampled
from rca.ingest.tables.structured import decode, flatten, plain_name, without_halves
from rca.ingest.weights.generated_text import generation_columns
from rca.ingest.weights.sample_files import add_samples

MAX_KEYS = 256
"""Keys of one record that are looked at."""
_MAX_CELLS, _FEWEST_KEYS = 8_000_000, 24
"""Cells of all columns together, empty ones among them, and the keys that are read all the same: where each row has
keys of its own, nearly all cells are empty."""
_MESSAGE_KEYS = frozenset({"message", "msg", "event", "log", "text_payload"})
_LEVEL_KEYS = frozenset({"level", "levelname", "severity", "lvl", "loglevel"})


def is_log_record(record: Any) -> bool:
    """Say whether a JSON object is a line of a structured logger and not a row of numbers."""
    keys = {str(key).lower() for key in record} if isinstance(record, dict) else set()
    return bool(keys & _MESSAGE_KEYS and keys & _LEVEL_KEYS)


def records_of(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield (1-based line, flat object) of every non-empty line; None for a line that holds no object."""
    for number, line in enumerate(lines, start=1):
        text = line.strip().rstrip(",")
        if text in {"", "[", "]"}:
            continue
        try:
            item = json.loads(without_halves(text))
        except (ValueError, RecursionError):
            yield number, None
        else:
            yield number, dict(flatten(item, limit=MAX_KEYS)) if isinstance(item, dict) else None


def add_records(out: EventBuilder, rows: list[tuple[int, dict[str, Any]]]) -> list[str]:
    """Add the numbers of a list of (line, flat record) as metric events; return what was left out."""
    names = list(dict.fromkeys(key for _line, row in rows for key in row))
    most = min(MAX_KEYS, max(_FEWEST_KEYS, _MAX_CELLS // max(len(rows), 1)))
    columns = {name: [row.get(name) for _line, row in rows] for name in names[:most]}
    lines = np.fromiter((line for line, _row in rows), dtype=np.int64, count=len(rows))
    warnings = add_metrics(out, {**columns, **generation_columns(columns)}, lines=lines)
    add_samples(out, columns, path=out.source)
    if len(names) > most:
        warnings.append(f"{out.source}: only the first {most} of {len(names)} keys were read.")
    return warnings


class JsonLinesIngestor:
    """Reads one JSON object a line into metric events."""

    name = "metrics lines"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take `*.jsonl` and `*.ndjson`, and other names whose first lines are objects; not structured logs."""
        name = plain_name(source.path)
        lines = [line for line in decode(head).splitlines() if line.strip()][:3]
        named = name.endswith((".jsonl", ".ndjson"))
        whole = lines if len(lines) < 3 and named else lines[:2]
        found = [row for _line, row in records_of(whole)]
        if any(is_log_record(row) for row in found):
            return False
        return bool(lines) and (named or (len(found) == 2 and all(found) and name.endswith((".json", ".log", ".txt"))))

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read every line that holds an object. Raises UnreadableSource where none does."""
        sampled = read_sampled(source, context)
        data, notes = sampled.data, sampled.warnings
        found = list(records_of(decode(data).split("\n")))
        rows = [(line, row) for line, row in found if row is not None]
        if not rows:
            raise UnreadableSource(f"{source.path} holds no JSON object on any line.")
        out = EventBuilder(source.path, rank=source.rank, host=source.host)
        warnings = [*notes, *add_records(out, rows)]
        if bad := len(found) - len(rows):
            warnings.append(f"{source.path}: {bad} lines are no JSON objects and were left out.")
        return Ingested(sampled.placed(out.build()), lines=len(found), bytes=len(data), warnings=tuple(warnings))

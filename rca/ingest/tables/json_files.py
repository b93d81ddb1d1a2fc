"""JSON documents: settings, metric histories, vocabularies, cluster objects; the content decides which."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.machine.containers import add_cluster_document, is_cluster_document
from rca.ingest.places.content import read_head
from rca.ingest.settings.config_roles import role_of
from rca.ingest.settings.config_rows import add_settings
from rca.ingest.tables.json_lines import JsonLinesIngestor, add_records, records_of
from rca.ingest.tables.sampled_lines import MAX_SAMPLED
from rca.ingest.tables.structured import MAX_STRUCTURED, decode, parse_json, plain_name, read_whole
from rca.ingest.tables.tool_json import add_tool_document
from rca.ingest.trackers.metric_history import add_history, is_history
from rca.ingest.weights.tokenizer_files import add_token_roles, add_tokenizer, is_tokenizer

_LINES = JsonLinesIngestor()
_ELSEWHERE = (
    b'"traceEvents"',
    b'"py_callstack"',
    b'"segments"',
    b'"device_traces"',
    b'"pg_config"',
    b'"weight_map"',
)
"""Traces, torchelastic error files, memory snapshots, flight recordings and weight indexes have their own readers."""


_LIST_OF_RECORDS = re.compile(r"\[\s*\{\s*\"[^\"\n]{1,100}\"\s*:")
_FIRST = 20
"""Lines that show whether a file holds one object a line."""
_OF_A_MODEL = frozenset({
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "config.json", "generation_config.json", "preprocessor_config.json", "processor_config.json", "adapter_config.json",
    "chat_template.json",
})  # fmt: skip
"""Files of a model folder that must parse for the model to load."""


class JsonIngestor:
    """Reads one JSON document into configuration, metric, artifact or system events."""

    name = "settings"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take `*.json` that starts like JSON and is no trace, recording or index.

        A list of records may have a name without a suffix: Chainer and ESPnet keep their metrics in a file `log`.
        """
        name, text = plain_name(source.path), decode(head).lstrip()
        if any(mark in head for mark in _ELSEWHERE):
            return False
        return (
            text[:1] in {"{", "["} if name.endswith(".json") else "." not in name and bool(_LIST_OF_RECORDS.match(text))
        )

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read the document. Raises UnreadableSource where it is broken or says nothing that is understood."""
        if source.size > MAX_SAMPLED and _LINES.accepts(source, read_head(source)):
            return _LINES.read(source, context)
        data, _cut, notes = read_whole(source, context, MAX_STRUCTURED)
        size, text = len(data), decode(data)
        del data  # what is parsed takes its place
        name = plain_name(source.path)
        out = EventBuilder(source.path, rank=source.rank, host=source.host)
        try:
            document = parse_json(text, what=source.path)
        except UnreadableSource as error:
            if (rows := _rows(text)) is not None:
                warnings = add_records(out, rows)
                return Ingested(out.build(), lines=len(rows), bytes=size, warnings=(*notes, *warnings))
            if name not in _OF_A_MODEL:
                raise
            # A loader would stop at this file, so that it is broken is something the run left.
            attrs = {"file": name, "status": "broken", "size": size}
            out.add(kind="artifact", name="model.file", line=1, severity="error", text=str(error), attrs=attrs)
            return Ingested(out.build(), lines=1, bytes=size, warnings=(*notes, str(error)))
        warnings = add_document(out, name, document, text)
        if not len(out):
            raise UnreadableSource(f"{source.path} is JSON without settings, metrics or tokens that are understood.")
        return Ingested(out.build(), lines=text.count("\n") + 1, bytes=size, warnings=(*notes, *warnings))


def _rows(text: str) -> list[tuple[int, dict[str, Any]]] | None:
    """Return the records of text with one object a line, which Detectron2, mmengine and Ray call `*.json`, or None."""
    start = list(islice(records_of(text.splitlines()[:_FIRST]), _FIRST))
    if len(start) < 2 or any(row is None for _line, row in start[:-1]):
        return None
    return [(line, row) for line, row in records_of(text.splitlines()) if row is not None]


def add_document(out: EventBuilder, name: str, document: Any, text: str) -> list[str]:
    """Add what one parsed document says; `name` is its lower-case file name. Return sentences on what was left out."""
    if is_cluster_document(document):
        add_cluster_document(out, document)
        return []
    if add_tool_document(out, document):
        return []
    if is_tokenizer(name, document):
        add_tokenizer(out, name, document)
        return []
    if isinstance(document, dict) and all(isinstance(document.get(key), list) for key in ("input_ids", "labels")):
        return add_records(out, [(1, {key: item for key, item in document.items() if isinstance(item, list)})])
    if is_history(name, document):
        return add_history(out, document)
    if isinstance(document, dict):
        role = role_of(name, document)
        if role == "tokenizer":
            add_token_roles(out, name, document)
            document = {key: value for key, value in document.items() if key not in {"added_tokens_decoder"}}
        add_settings(out, document, role=role, text=text)
    return []

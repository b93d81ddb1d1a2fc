"""Metric histories in one JSON document: the Hugging Face trainer_state.json, lists of records, results files."""

from __future__ import annotations

from typing import Any

import numpy as np

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.json_lines import add_records, is_log_record
from rca.ingest.metric_columns import add_metrics
from rca.ingest.names import METRIC_NAMES, canonical_config, canonical_metric
from rca.ingest.quantities import number
from rca.ingest.structured import MAX_STRUCTURED, decode, flatten, parse_json, plain_name, read_whole

_RESULTS = ("all_results.json", "train_results.json", "eval_results.json", "test_results.json", "predict_results.json")
_PLANS = ("max_steps", "num_train_epochs", "train_batch_size", "logging_steps", "eval_steps", "save_steps")
"""Settings that trainer_state.json repeats from the training arguments."""
_STATE = ("global_step", "epoch", "best_metric", "total_flos")


class MetricHistoryIngestor:
    """Reads JSON documents that hold a history of metrics."""

    name = "metric history"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take JSON that shows a log history, records of metrics, or lists of metrics by name."""
        name = plain_name(source.path)
        if not name.endswith(".json") or not head.lstrip(b"\xef\xbb\xbf \r\n\t").startswith((b"{", b"[")):
            return False
        return (
            name in {"trainer_state.json", *_RESULTS}
            or b'"log_history"' in head
            or "history" in name
            or "metrics" in name
            or (head.lstrip().startswith(b"[") and b'"step"' in head and b'"loss"' in head)
        )

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read the history. Raises UnreadableSource where the document holds none."""
        data, _cut, notes = read_whole(source, context, MAX_STRUCTURED)
        text = decode(data)
        document = parse_json(text, what=source.path)
        out = EventBuilder(source.path, rank=source.rank, host=source.host)
        warnings = [*notes, *add_history(out, document)]
        if not len(out):
            raise UnreadableSource(f"{source.path} holds no metrics by step or by name.")
        return Ingested(out.build(), lines=text.count("\n") + 1, bytes=len(data), warnings=tuple(warnings))


def add_history(out: EventBuilder, document: Any) -> list[str]:
    """Add what a JSON document tells of metrics; return sentences on what was left out."""
    if isinstance(document, list):
        rows = [dict(flatten(row, limit=256)) for row in document if isinstance(row, dict) and not is_log_record(row)]
        return add_records(out, list(enumerate(rows, start=1)))
    if not isinstance(document, dict):
        return []
    if isinstance(document.get("log_history"), list):
        _add_state(out, document)
        rows = [dict(flatten(row, limit=256)) for row in document["log_history"] if isinstance(row, dict)]
        return add_records(out, list(enumerate(rows, start=1)))
    lists = {key: item for key, item in document.items() if isinstance(item, list) and _numbers(item)}
    if lists and canonical_metrics(lists):
        longest = max(map(len, lists.values()))
        padded = {key: [*item, *[None] * (longest - len(item))] for key, item in lists.items()}
        steps = {} if "step" in padded or "epoch" in padded else {"step": list(range(longest))}
        return add_metrics(out, {**steps, **padded}, lines=np.arange(1, longest + 1, dtype=np.int64))
    flat = dict(flatten(document, limit=2000))
    return add_records(out, [(1, flat)]) if canonical_metrics(flat) else []


def canonical_metrics(names: Any) -> set[str]:
    """Return the common metric names among the keys of a document."""
    return {canonical_metric(str(name).rsplit(".", 1)[-1]) for name in names} & set(METRIC_NAMES)


def _add_state(out: EventBuilder, document: dict[str, Any]) -> None:
    """Add the settings and the position that a trainer state repeats beside its history."""
    for key in _PLANS:
        if (value := number(document.get(key))) is not None and value > 0:
            out.add(
                kind="config",
                name=canonical_config(key),
                value=value,
                text=str(document[key]),
                attrs={"key": key, "value": document[key], "file_role": "trainer_state"},
            )
    state = {key: document.get(key) for key in _STATE if number(document.get(key)) is not None}
    step = number(document.get("global_step"))
    out.add(
        kind="artifact",
        name="trainer.state",
        step=None if step is None else int(step),
        value=step,
        attrs={
            **state,
            "entries": len(document["log_history"]),
            "best_checkpoint": document.get("best_model_checkpoint"),
        },
    )


def _numbers(items: list[Any]) -> bool:
    """Say whether a list holds numbers and gaps only, and at least two numbers."""
    found = [number(item) is not None for item in items if item is not None]
    return len(found) > 1 and all(found) and not any(isinstance(item, (list, dict)) for item in items)

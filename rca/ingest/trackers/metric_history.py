"""Metric histories in one JSON document: the Hugging Face trainer_state.json, lists of records, results files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rca.events import EventBuilder
from rca.ingest.names import METRIC_NAMES, canonical_metric
from rca.ingest.settings.config_rows import setting_name
from rca.ingest.tables.cells import number
from rca.ingest.tables.json_lines import add_records, is_log_record
from rca.ingest.tables.metric_table import add_metrics
from rca.ingest.tables.structured import flatten

_RESULTS = ("all_results.json", "train_results.json", "eval_results.json", "test_results.json", "predict_results.json")
_PLANS = ("max_steps", "num_train_epochs", "train_batch_size", "logging_steps", "eval_steps", "save_steps")
"""Settings that trainer_state.json repeats from the training arguments."""
MAX_ROWS = 100_000
"""Rows of one history that are kept."""
_STATE = ("global_step", "epoch", "best_metric", "total_flos")


def is_history(name: str, document: Any) -> bool:
    """Say whether a JSON document holds metrics and not settings; `name` is its lower-case file name."""
    if isinstance(document, list):
        records = [row for row in document[:50] if isinstance(row, dict)]
        return bool(records) and any(canonical_metrics(row) for row in records)
    if not isinstance(document, dict):
        return False
    if isinstance(document.get("log_history"), list):
        return True
    named = name in _RESULTS or any(word in name for word in ("metric", "history", "summary", "results", "scores"))
    lists = [key for key, item in document.items() if isinstance(item, list) and _numbers(item)]
    return bool(canonical_metrics(lists)) or (named and bool(canonical_metrics(dict(flatten(document, limit=500)))))


def add_history(out: EventBuilder, document: Any) -> list[str]:
    """Add what a JSON document tells of metrics; return sentences on what was left out."""
    if isinstance(document, list):
        return _add_rows(out, [row for row in document if isinstance(row, dict) and not is_log_record(row)])
    if not isinstance(document, dict):
        return []
    if isinstance(document.get("log_history"), list):
        _add_state(out, document)
        return _add_rows(out, [row for row in document["log_history"] if isinstance(row, dict)])
    if len(document) > 1 and all(str(key).isdecimal() and isinstance(item, dict) for key, item in document.items()):
        return _add_rows(out, [{"step": key, **item} for key, item in document.items()])
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
                name=setting_name(key, "trainer_state"),
                value=value,
                text=str(document[key]),
                attrs={"key": key, "value": document[key], "file_role": "trainer_state"},
            )
    stopping = _early_stopping(document)
    if "patience" in stopping:
        out.add(
            kind="config",
            name="early_stopping_patience",
            value=stopping["patience"],
            text=str(stopping["patience"]),
            attrs={"key": "early_stopping_patience", "value": stopping["patience"], "file_role": "trainer_state"},
        )
    if 0 < stopping.get("patience", 0) <= stopping.get("patience_counter", -1):
        patience, counter = int(stopping["patience"]), int(stopping["patience_counter"])
        text = f"The early stopping counter stands at {counter} of a patience of {patience}: the run ended on purpose."
        out.add(kind="log", name="run.early_stopped", severity="info", role="benign", phase="teardown", text=text)
    state = {key: document.get(key) for key in _STATE if number(document.get(key)) is not None}
    step = number(document.get("global_step"))
    out.add(
        kind="artifact",
        name="trainer.state",
        step=int(step) if step is not None and 0 <= step < 2**31 else None,
        value=step,
        attrs={
            **state,
            "entries": len(document["log_history"]),
            "best_checkpoint": document.get("best_model_checkpoint"),
            **{f"early_stopping_{key}": value for key, value in stopping.items()},
        },
    )


def _early_stopping(document: dict[str, Any]) -> dict[str, float]:
    """Return patience and counter of the callback that ends a run which no longer improves."""
    callbacks = document.get("stateful_callbacks")
    callback = callbacks.get("EarlyStoppingCallback") if isinstance(callbacks, dict) else None
    callback = callback[0] if isinstance(callback, list) and callback else callback
    found: dict[str, float] = {}
    for holder, key in (("args", "patience"), ("attributes", "patience_counter")):
        values = callback.get(holder) if isinstance(callback, dict) else None
        value = number(values.get(f"early_stopping_{key}")) if isinstance(values, dict) else None
        if value is not None and value >= 0:
            found[key] = value
    return found


def _numbers(items: list[Any]) -> bool:
    """Say whether a list holds numbers and gaps only, and at least two numbers."""
    found = [number(item) is not None for item in items if item is not None]
    return len(found) > 1 and all(found) and not any(isinstance(item, (list, dict)) for item in items)


def _add_rows(out: EventBuilder, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Add rows of numbers; of very many both ends are kept whole and an even part of those in between."""
    kept = list(enumerate(rows, start=1))
    notes = []
    if len(rows) > MAX_ROWS:
        end = MAX_ROWS // 4
        every = -(-(len(rows) - 2 * end) // (MAX_ROWS - 2 * end))
        kept = kept[:end] + kept[end:-end:every] + kept[-end:]
        notes = [
            f"{out.source}: of {len(rows):,} rows the first and last {end:,} and one in {every} between were read."
        ]
    return [*notes, *add_records(out, [(line, dict(flatten(row, limit=256))) for line, row in kept])]

"""Columns of a metric file to metric events: which column is the step, the time, the rank, and which are values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rca.events import EventBuilder
from rca.ingest.metric_units import in_common_unit, meaning
from rca.ingest.metric_words import worded_names
from rca.ingest.names import METRIC_NAMES
from rca.ingest.tables.cells import number, number_with_unit

STEP_COLUMNS = (
    "step",
    "global_step",
    "_step",
    "trainer/global_step",
    "iteration",
    "iterations",
    "iter",
    "it",
    "num_updates",
    "update",
    "train_step",
    "current_steps",
    "training_iteration",
    "time/total_timesteps",
    "total_timesteps",
    "batch_idx",
    "batch",
    "epoch",
)
"""Names of the step, best first; a later one counts only where no earlier one exists."""
_WEAK_STEPS = frozenset({"it", "update", "batch_idx", "batch", "epoch"})
"""Names that mean other things as well (a batch size, a request's batch)."""
_CLIMBS = 0.8
TIME_COLUMNS = (
    "timestamp",
    "time",
    "_timestamp",
    "wall_time",
    "wall time",
    "datetime",
    "date",
    "ts",
    "t",
    "time_utc",
    "created_at",
)
RANK_COLUMNS = ("rank", "global_rank", "process_index", "proc_rank")
_LATEST = 4.1e15
"""Microseconds since the epoch: a time after the year 2099 is no time."""
MAX_COLUMNS = 512
MAX_LABELS = 64
"""Different texts of one column that still count as a label (model name, split); more, or one a row, is free text."""
_LABEL_CHARS = 80
_LABEL_BLANKS = 5
_MISSING = frozenset({"", "-", "n/a", "[n/a]", "none", "null", "[not supported]", "[unknown error]", "err!"})


@dataclass(frozen=True)
class Column:
    """One column: numbers with NaN as a value, and a mask of the rows that have one; or short labels."""

    values: npt.NDArray[np.float64]
    present: npt.NDArray[np.bool_]
    labels: Sequence[str | None] | None = None
    unit: str = ""


def column_of(items: Sequence[Any] | pa.ChunkedArray) -> Column:
    """Read a column of texts or JSON values; what is no number is missing, and a column of few texts is a label."""
    if isinstance(items, pa.ChunkedArray):
        try:
            cast = pc.cast(items, pa.float64())
        except pa.ArrowInvalid:
            items = items.to_pylist()
        else:
            present = np.asarray(pc.is_valid(cast), dtype=bool)
            return Column(np.asarray(cast.to_numpy(), dtype=float), present)
    numbers = [number(item) for item in items]
    texts = [
        item.strip() if isinstance(item, str) and value is None and item.strip().lower() not in _MISSING else ""
        for item, value in zip(items, numbers, strict=True)
    ]
    different = {text for text in texts if text}
    unit = ""
    units = {text: found for text in different if (found := number_with_unit(text)) is not None}
    if different and len(units) == len(different):
        numbers = [
            value if value is not None else (units[text][0] if text else None)
            for value, text in zip(numbers, texts, strict=True)
        ]
        unit = next(iter(units.values()))[1]
        different = set()
    present = np.fromiter((value is not None for value in numbers), dtype=bool, count=len(numbers))
    values = np.fromiter((np.nan if value is None else value for value in numbers), dtype=float, count=len(numbers))
    labels: Sequence[str | None] | None = None
    repeated = len(different) <= max(1, sum(map(bool, texts)) // 2)
    short = all(len(text) <= _LABEL_CHARS and text.count(" ") <= _LABEL_BLANKS for text in different)
    if different and repeated and short and len(different) <= MAX_LABELS:
        labels = [text or None for text in texts]
    return Column(values, present, labels, unit)


def time_of(items: Sequence[Any] | pa.ChunkedArray) -> pa.Array | None:
    """Return microseconds since the epoch of a column of dates or epoch numbers; None where it holds no full dates.

    A clock time without a date has no place on the time axis and is left out.
    """
    import pandas as pd

    listed = items.to_pylist() if isinstance(items, pa.ChunkedArray) else list(items)
    first = next((item for item in listed if item is not None and item != ""), None)
    if first is None or isinstance(first, bool):
        return None
    if (value := number(first)) is not None:
        scale = next((scale for top, scale in ((3e10, 1e6), (3e13, 1e3), (3e16, 1.0), (3e19, 1e-3)) if value < top), 0)
        numbers = [number(item) for item in listed]
        if value < 1e9 or not scale:
            return None
        micros = [None if one is None else one * scale for one in numbers]
        return pa.array([int(one) if one and 1e15 <= one < _LATEST else None for one in micros], type=pa.int64())
    if not (isinstance(first, str) and first[:4].isdigit() and first[4:5] in "-/" and len(first) >= 10):
        return None
    texts = pd.Series([item if isinstance(item, str) and len(item) <= 40 else None for item in listed], dtype="str")
    stamps = pd.to_datetime(texts.str.strip(), errors="coerce", utc=True, format="mixed")
    return pa.Array.from_pandas(stamps.dt.as_unit("us")).cast(pa.int64())


def add_metrics(
    out: EventBuilder,
    columns: Mapping[str, Sequence[Any] | pa.ChunkedArray],
    *,
    lines: npt.NDArray[np.int64],
    names: Mapping[str, str] | None = None,
    attrs: Sequence[Mapping[str, Any] | None] | None = None,
) -> list[str]:
    """Add every numeric column as metric events; return sentences on what was left out.

    `lines` places the rows in the source, `names` overrides the common name of a column, `attrs` adds to the labels
    of the rows.
    """
    lower = {name.strip().lower(): name for name in reversed(list(columns))}
    step_name, steps = _steps(columns, lower)
    rank_name = next((lower[name] for name in RANK_COLUMNS if name in lower), None)
    time_name, times = None, None
    for name in TIME_COLUMNS:
        if name in lower and (times := time_of(columns[lower[name]])) is not None:
            time_name = lower[name]
            break
    skip = {time_name, rank_name} | ({step_name} if step_name and step_name.lower() != "epoch" else set())
    read = {name: column_of(items) for name, items in list(columns.items())[:MAX_COLUMNS] if name not in skip}
    ranks = _whole(column_of(columns[rank_name])) if rank_name else None
    labels = {
        name: column.labels
        for name, column in read.items()
        if column.labels is not None and name.lower() not in TIME_COLUMNS
    }
    notes = _notes(labels, attrs, len(lines))
    named = {raw: (names or {}).get(raw, meaning(raw).name) for raw in read}
    known = {raw: name for raw, name in named.items() if name in METRIC_NAMES}
    named |= worded_names(named.keys() - known.keys() - (names or {}).keys(), known.values())
    for raw, column in read.items():
        where = np.flatnonzero(column.present)
        if not len(where):
            continue
        as_named = meaning(raw)
        out.extend(
            len(where),
            kind="metric",
            name=named[raw],
            line=lines[where],
            time=None
            if times is None
            else times.take(pa.array(where)).cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC")),
            step=None if steps is None else steps.take(pa.array(where)),
            rank=out.rank if ranks is None else ranks.take(pa.array(where)).cast(pa.int32()),
            value=in_common_unit(column.values[where], as_named),
            unit=as_named.unit or column.unit,
            attrs=None if notes is None else notes.take(pa.array(where)),
        )
    if len(columns) > MAX_COLUMNS:
        return [f"{out.source}: only the first {MAX_COLUMNS} of {len(columns)} columns were read."]
    return []


def _steps(
    columns: Mapping[str, Sequence[Any] | pa.ChunkedArray], lower: Mapping[str, str]
) -> tuple[str | None, pa.Array | None]:
    """Return the step column and its whole numbers; a weak name counts only where its values climb."""
    for name in STEP_COLUMNS:
        if name not in lower:
            continue
        column = column_of(columns[lower[name]])
        known = column.values[column.present & np.isfinite(column.values)]
        if len(known) and (name not in _WEAK_STEPS or np.mean(np.diff(known, prepend=known[0]) >= 0) >= _CLIMBS):
            return lower[name], _whole(column)
    return None, None


def _whole(column: Column) -> pa.Array:
    """Return whole numbers, null where there is none (Lightning logs a fractional epoch as step now and then)."""
    good = column.present & np.isfinite(column.values) & (np.abs(column.values) < 2**31)
    whole = np.where(good, np.floor(np.where(good, column.values, 0)), 0).astype(np.int64)
    return pa.array(whole, mask=~good)


def _notes(
    labels: Mapping[str, Sequence[str | None]], attrs: Sequence[Mapping[str, Any] | None] | None, count: int
) -> pa.Array | None:
    """Return the labels of each row as JSON texts."""
    if not labels and attrs is None:
        return None
    rows: list[str | None] = []
    for position in range(count):
        row = {name.strip().lower(): items[position] for name, items in labels.items() if items[position] is not None}
        if attrs is not None:
            row |= attrs[position] or {}
        rows.append(json.dumps(row, ensure_ascii=False, sort_keys=True) if row else None)
    return pa.array(rows, type=pa.string())

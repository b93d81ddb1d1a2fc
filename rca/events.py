"""The event table: one row for everything that was said, measured or timed.

Ingestors fill an `EventBuilder` column by column; `event_table` joins the parts, orders them and numbers them.
Facts and hypotheses read the result through `EventTable`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rca.chronology import chronological
from rca.likely_metrics import with_likely
from rca.metric_series import MetricSeries, series_of

if TYPE_CHECKING:
    import pandas as pd

MAX_TEXT = 4096
"""Bytes of the original text kept with an event; the rest is re-read from the source by offset."""

KINDS = ("log", "exception", "metric", "span", "config", "package", "artifact", "system", "process")
PHASES = ("startup", "load", "data", "train", "eval", "save", "inference", "teardown")
SEVERITIES = ("debug", "info", "warning", "error", "fatal")
ROLES = ("initiating", "cascade", "teardown", "benign")

_CATEGORY = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        ("source", _CATEGORY),
        ("line", pa.int64()),
        ("offset", pa.int64()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("step", pa.int64()),
        ("rank", pa.int32()),
        ("host", _CATEGORY),
        ("phase", _CATEGORY),
        ("kind", _CATEGORY),
        ("name", _CATEGORY),
        ("value", pa.float64()),
        ("unit", _CATEGORY),
        ("duration_us", pa.float64()),
        ("severity", _CATEGORY),
        ("role", _CATEGORY),
        ("text", pa.string()),
        ("attrs", pa.string()),
    ]
)
"""Columns of one ingested part; `event_table` puts `event_id` in front."""


_JSON = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=str)


class EventBuilder:
    """Collects the events of one source."""

    def __init__(self, source: str, *, rank: int | None = None, host: str | None = None) -> None:
        self.source = source
        self.rank = rank
        self.host = host
        self._rows: list[tuple[Any, ...]] = []
        """Values of one event each, in the order of `SCHEMA`."""
        self._bulk: list[pa.Table] = []
        self._in_bulk = 0

    def __len__(self) -> int:
        return len(self._rows) + self._in_bulk

    def add(
        self,
        *,
        kind: str,
        name: str,
        line: int | None = None,
        offset: int | None = None,
        time: int | None = None,
        step: int | None = None,
        rank: int | None = None,
        host: str | None = None,
        phase: str | None = None,
        value: float | None = None,
        unit: str | None = None,
        duration_us: float | None = None,
        severity: str | None = None,
        role: str | None = None,
        text: str | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        """Add one event. `time` is microseconds since the epoch (UTC); `attrs` must be JSON-able."""
        row = (
            self.source,
            line,
            offset,
            time,
            step,
            self.rank if rank is None else rank,
            self.host if host is None else host,
            phase,
            kind,
            name,
            value,
            unit,
            duration_us,
            severity,
            role,
            None if text is None else text[:MAX_TEXT],
            None if not attrs else _JSON.encode(attrs),
        )
        self._rows.append(row)

    def extend(self, length: int, **columns: Any) -> None:
        """Add `length` events at once; each column is an array of that length or one value for all rows.

        Columns that are left out take the builder's source, rank and host, and otherwise null.
        """
        columns.setdefault("source", self.source)
        columns.setdefault("rank", self.rank)
        columns.setdefault("host", self.host)
        arrays = []
        for field in SCHEMA:
            value = columns.get(field.name)
            if value is None:
                array = pa.nulls(length, type=field.type)
            elif isinstance(value, (str, int, float)):
                array = _repeated(value, length, field.type)
            else:
                array = pa.array(value, from_pandas=field.name not in {"value", "duration_us"})
            arrays.append(array.cast(field.type) if array.type != field.type else array)
        self._bulk.append(pa.Table.from_arrays(arrays, schema=SCHEMA))
        self._in_bulk += length

    def build(self) -> pa.Table:
        """Return the collected events as one Arrow table of `SCHEMA`."""
        if not len(self):
            return empty_events()
        columns = zip(*self._rows, strict=True) if self._rows else ((),) * len(SCHEMA)
        arrays = [_column(items, field.type) for items, field in zip(columns, SCHEMA, strict=True)]
        return pa.concat_tables([pa.Table.from_arrays(arrays, schema=SCHEMA), *self._bulk])


def _column(items: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return a column; a number that it cannot hold is left out, because it must not cost the source."""
    try:
        return pa.array(items, type=kind)
    except (OverflowError, pa.ArrowInvalid):
        if pa.types.is_floating(kind):
            return pa.array([None if item is None else _nearest(item) for item in items], kind)
        most = 1 << (kind.bit_width - 1)
        return pa.array([item if item is None or -most <= item < most else None for item in items], kind)


def _nearest(number: float) -> float:
    """Round an integer as Python does; Arrow refuses those that are no float exactly."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _repeated(value: str | float, length: int, kind: pa.DataType) -> pa.Array:
    """`value` in every row; a category is built as one code, because casting costs more than small logs do."""
    if not pa.types.is_dictionary(kind):
        return pa.repeat(pa.scalar(value, type=kind), length)
    return pa.DictionaryArray.from_arrays(np.zeros(length, dtype=np.int32), pa.array([value], type=pa.string()))


@cache
def empty_events() -> pa.Table:
    """Return the table of `SCHEMA` without rows; making it costs more than reading a small log."""
    return SCHEMA.empty_table()


@dataclass(frozen=True, slots=True)
class Event:
    """One row of the table, for code that looks at single events."""

    event_id: int
    source: str
    kind: str
    name: str
    line: int | None = None
    offset: int | None = None
    time: int | None = None
    """Microseconds since the epoch, UTC."""
    step: int | None = None
    rank: int | None = None
    host: str | None = None
    phase: str | None = None
    value: float | None = None
    unit: str | None = None
    duration_us: float | None = None
    severity: str | None = None
    role: str | None = None
    text: str = ""
    attrs: Mapping[str, Any] | None = None

    def attr(self, key: str, default: Any = None) -> Any:
        """Return one typed capture."""
        return default if self.attrs is None else self.attrs.get(key, default)


class EventTable:
    """The unified table and the questions that facts and conditions ask of it."""

    def __init__(self, table: pa.Table, *, text_sources: int | None = None) -> None:
        self.table = table
        self._text_sources = text_sources

    @classmethod
    def from_parts(cls, parts: Iterable[pa.Table], *, text_sources: int | None = None) -> EventTable:
        """Join the parts, order them by (time, source, place) and number the rows.

        A row without a time stays behind the last timed row of its source that stands before it.
        """
        joined = pa.concat_tables([empty_events(), *parts]).unify_dictionaries().combine_chunks()
        joined = joined.take(pa.array(chronological(joined)))
        numbered = joined.add_column(0, "event_id", pa.array(np.arange(joined.num_rows, dtype=np.int64)))
        return cls(numbered, text_sources=text_sources)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The table as an Arrow-backed DataFrame."""
        import pandas as pd

        frame: pd.DataFrame = self.table.to_pandas(types_mapper=pd.ArrowDtype)
        return frame

    @property
    def has_text(self) -> bool:
        """Whether any log text was read: only then is a silent signature a "no" and not "no data"."""
        return len(self) > 0 if self._text_sources is None else self._text_sources > 0

    @cached_property
    def events(self) -> Sequence[Event]:
        """All events but metrics and spans, in order."""
        import pyarrow.compute as pc

        kind = self.table["kind"].cast(pa.string())
        mask = pc.invert(pc.is_in(kind, value_set=pa.array(["metric", "span"])))
        return self._rows(self.table.filter(mask))

    @cached_property
    def _by_id(self) -> Mapping[int, Event]:
        return {event.event_id: event for event in self.events}

    @cached_property
    def _by_name(self) -> Mapping[str, tuple[Event, ...]]:
        found: dict[str, list[Event]] = {}
        for event in self.events:
            found.setdefault(event.name, []).append(event)
        return {name: tuple(items) for name, items in found.items()}

    def named(self, name: str, *, kind: str | None = None) -> tuple[Event, ...]:
        """Return the events of that name (signature id, exception type, configuration key, ...), in order."""
        found = self._by_name.get(name, ())
        return found if kind is None else tuple(event for event in found if event.kind == kind)

    def of_kind(self, kind: str) -> tuple[Event, ...]:
        """Return the events of one kind (not `metric` or `span`), in order."""
        return tuple(event for event in self.events if event.kind == kind)

    def get(self, event_id: int) -> Event:
        """Return one event by its id."""
        known = self._by_id.get(event_id)
        return known if known is not None else self._rows(self.table.slice(event_id, 1))[0]

    def config(self, key: str) -> Event | None:
        """Return the last setting of a configuration key (canonical name), or None."""
        found = self.named(key, kind="config")
        return found[-1] if found else None

    @cached_property
    def packages(self) -> Mapping[str, str]:
        """Installed packages: lower-case name with dashes -> version."""
        return {event.name: event.text for event in self.of_kind("package")}

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """Global ranks that appear in the table."""
        return tuple(sorted(int(rank) for rank in self.table["rank"].unique().to_pylist() if rank is not None))

    @property
    def hosts(self) -> tuple[str, ...]:
        """Nodes that appear in the table, sorted."""
        return tuple(sorted(host for host in self.table["host"].cast(pa.string()).unique().to_pylist() if host))

    @cached_property
    def _series(self) -> Mapping[str, tuple[MetricSeries, ...]]:
        return with_likely(series_of(self.table))

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Names of all metrics, sorted."""
        return tuple(sorted(self._series))

    def all_metrics(self, name: str) -> tuple[MetricSeries, ...]:
        """Return the metric as each (source, rank, device) reported it."""
        return self._series.get(name, ())

    def metric(self, name: str) -> MetricSeries | None:
        """Return the metric from the source that reported the most points, or None."""
        found = self.all_metrics(name)
        return max(found, key=len) if found else None

    def spans(self, prefix: str = "") -> pd.DataFrame:
        """Return the spans whose name starts with `prefix`."""
        import pyarrow.compute as pc

        spans = self.table.filter(pc.equal(self.table["kind"].cast(pa.string()), "span"))
        if prefix:
            spans = spans.filter(pc.starts_with(spans["name"].cast(pa.string()), prefix))
        frame: pd.DataFrame = spans.to_pandas()
        return frame

    def as_benign(self, event_ids: Collection[int]) -> EventTable:
        """Return the table in which these events are no failures: what was wrong about them is a benign warning."""
        import pyarrow.compute as pc

        table = self.table
        chosen = pc.is_in(table["event_id"], value_set=pa.array(sorted(event_ids), type=pa.int64()))
        raised = pc.equal(table["kind"].cast(pa.string()), "exception")
        for name, value, worse in (("role", "benign", ROLES[:3]), ("severity", "warning", SEVERITIES[3:])):
            said = table[name].cast(pa.string())
            wrong = pc.or_(raised, pc.is_in(said, value_set=pa.array(worse)))
            changed = pc.if_else(pc.and_(chosen, wrong), pa.scalar(value), said).cast(_CATEGORY)
            table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), changed)
        return EventTable(table, text_sources=self._text_sources)

    def write_parquet(self, file: Path) -> None:
        """Write the table to a Parquet file."""
        import pyarrow.parquet as pq

        pq.write_table(self.table, file)

    def _rows(self, table: pa.Table) -> tuple[Event, ...]:
        if table.num_rows == 0:
            return ()
        columns = {name: table[name].to_pylist() for name in table.column_names if name != "time"}
        columns["time"] = table["time"].cast(pa.int64()).to_pylist()
        columns["attrs"] = [None if item is None else json.loads(item) for item in columns["attrs"]]
        columns["text"] = [item or "" for item in columns["text"]]
        names = tuple(columns)
        return tuple(Event(**dict(zip(names, row, strict=True))) for row in zip(*columns.values(), strict=True))

"""Answers of Prometheus as JSON: `/api/v1/query_range` and `/api/v1/query`, as series."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.machine.device_names import dcgm_name
from rca.ingest.machine.device_readings import stamps
from rca.ingest.machine.prometheus_names import known_name, owner_of
from rca.ingest.tables.cells import number
from rca.ingest.tables.metric_table import column_of, time_of
from rca.ingest.tables.structured import decode, parse_json, read_whole

MAX_SERIES = 5000
MAX_ANSWER = 20 * 1024**2
"""Bytes of one answer: a pair of a time and a text takes ten times what is written of it."""
MAX_POINTS = 400_000
"""Points of one answer that are kept, evenly over its time."""
_RESULT = re.compile(rb'"resultType"\s{0,4}:\s{0,4}"(?:matrix|vector)"')


def is_query_answer(document: Any) -> bool:
    """Say whether a document is the answer to a query of Prometheus, as a matrix or a vector."""
    data = document.get("data") if isinstance(document, dict) else None
    return (
        isinstance(data, dict)
        and data.get("resultType") in {"matrix", "vector"}
        and isinstance(data.get("result"), list)
    )


def add_query_answer(out: EventBuilder, document: dict[str, Any]) -> list[str]:
    """Add every series as metric events; return what was left out."""
    series = [item for item in document["data"]["result"] if isinstance(item, dict)]
    count = sum(len(item["values"]) for item in series[:MAX_SERIES] if isinstance(item.get("values"), list))
    every = -(-count // MAX_POINTS) or 1
    for item in series[:MAX_SERIES]:
        told, values = item.get("metric"), item.get("values")
        labels = told if isinstance(told, dict) else {}
        listed = values if isinstance(values, list) else [item.get("value")]
        points = [point for point in listed if isinstance(point, list) and len(point) == 2]
        points = points[(len(points) - 1) % every :: every]
        _add_series(out, {str(key): value for key, value in labels.items()}, points)
    notes = [f"{out.source}: one in {every} of {count:,} points was read."] if every > 1 else []
    return (
        [*notes, f"{out.source}: only the first {MAX_SERIES:,} series were read."]
        if len(series) > MAX_SERIES
        else notes
    )


def _add_series(out: EventBuilder, labels: dict[str, Any], points: list[list[Any]]) -> None:
    name = str(labels.pop("__name__", "query"))
    common, unit, factor = known_name(name)
    owner = owner_of(labels, device=dcgm_name(name) is not None)
    times = [number(point[0]) for point in points]
    values = [number(point[1]) for point in points]
    rows = [
        (int(time * 1e6), value * factor)
        for time, value in zip(times, values, strict=True)
        if time is not None and value is not None and 0 <= time < 4.2e9
    ]
    if not rows:
        return
    attrs = {key: str(value)[:200] for key, value in list(labels.items())[:64]} | {"series": name.lower()}
    if "gpu" in owner:
        attrs["gpu"] = owner["gpu"]
    out.extend(
        len(rows),
        kind="metric",
        name=common,
        # Samples of one series stand on one line, so the series and the place in it give the order.
        line=np.arange(len(rows), dtype=np.int64) + 1,
        time=stamps(pa.array([time for time, _value in rows], type=pa.int64())),
        value=np.array([value for _time, value in rows]),
        unit=unit,
        rank=owner.get("rank", out.rank),
        host=owner.get("host", out.host),
        attrs=json.dumps(attrs, sort_keys=True, ensure_ascii=False),
    )


_LABELLED = re.compile(r"([a-zA-Z_:][\w:]{0,200})\{(.{0,2000})\}")
_LABEL = re.compile(r'([a-zA-Z_]\w{0,100})="([^"]{0,300})"')


def add_labelled_columns(out: EventBuilder, columns: Mapping[str, Any], lines: npt.NDArray[np.int64]) -> set[str]:
    """Add the columns whose heads are series with labels, as Grafana exports them; return their names."""
    found = {name: match for name in columns if (match := _LABELLED.fullmatch(name)) is not None}
    time_name = next((name for name in columns if name.strip().lower() in {"time", "timestamp"}), None)
    if not found or time_name is None:
        return set()
    times = time_of(columns[time_name])
    for name, match in found.items():
        labels: dict[str, Any] = dict(_LABEL.findall(match[2]))
        common, unit, factor = known_name(match[1])
        owner = owner_of(labels, device=dcgm_name(match[1]) is not None)
        cells = column_of(columns[name])
        where = np.flatnonzero(cells.present)
        if not len(where):
            continue
        attrs = {**labels, "series": match[1].lower(), **({"gpu": owner["gpu"]} if "gpu" in owner else {})}
        out.extend(
            len(where),
            kind="metric",
            name=common,
            line=lines[where],
            time=None if times is None else stamps(times.take(pa.array(where))),
            value=cells.values[where] * factor,
            unit=unit,
            rank=owner.get("rank", out.rank),
            host=owner.get("host", out.host),
            attrs=json.dumps(attrs, sort_keys=True, ensure_ascii=False),
        )
    return {*found, time_name} if len(found) + 1 == len(columns) else set(found)


class QueryAnswerIngestor:
    """Reads a file that holds one answer of Prometheus."""

    name = "prometheus query"

    def accepts(self, source: Source, head: bytes) -> bool:  # noqa: ARG002 - the content decides, not the name
        """Take JSON whose head names the type of the result."""
        return head.lstrip()[:1] == b"{" and _RESULT.search(head) is not None

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read the series. Raises UnreadableSource where the answer is broken or empty."""
        data, _cut, notes = read_whole(source, context, MAX_ANSWER)
        document = parse_json(decode(data), what=source.path)
        out = EventBuilder(source.path, rank=source.rank, host=source.host)
        warnings = add_query_answer(out, document) if is_query_answer(document) else []
        if not len(out):
            raise UnreadableSource(f"{source.path} is an answer of Prometheus without a sample.")
        return Ingested(out.build(), lines=data.count(b"\n") + 1, bytes=len(data), warnings=(*notes, *warnings))

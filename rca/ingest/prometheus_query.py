"""Answers of Prometheus as JSON: `/api/v1/query_range` and `/api/v1/query`, as series."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from rca.events import EventBuilder
from rca.ingest.cells import number
from rca.ingest.device_names import dcgm_name
from rca.ingest.device_readings import stamps
from rca.ingest.prometheus_names import known_name, owner_of

MAX_SERIES = 5000
MAX_POINTS = 2_000_000


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
    left = MAX_POINTS
    series = [item for item in document["data"]["result"] if isinstance(item, dict)]
    for item in series[:MAX_SERIES]:
        told, values = item.get("metric"), item.get("values")
        labels = told if isinstance(told, dict) else {}
        listed = values if isinstance(values, list) else [item.get("value")]
        points = [point for point in listed if isinstance(point, list) and len(point) == 2][:left]
        left -= len(points)
        _add_series(out, {str(key): value for key, value in labels.items()}, points)
    if len(series) > MAX_SERIES or left <= 0:
        return [f"{out.source}: only the first {MAX_SERIES:,} series and {MAX_POINTS:,} points were read."]
    return []


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

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rca.events import EventTable
from rca.ingest.interface import IngestContext
from rca.ingest.places.discover import discover
from rca.ingest.read import read_source
from rca.ingest.registry import INGESTORS


def table(folder: Path, rows: list[dict[str, object]]) -> EventTable:
    file = folder / "run" / "service.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    sources, _skipped = discover(file.parent)
    read = [read_source(source, INGESTORS, IngestContext())[1] for source in sources]
    return EventTable.from_parts([item.events for item in read if item is not None])


def record(place: int, **more: object) -> dict[str, object]:
    return {"time": f"2025-01-01T10:00:{place:02d}Z", "level": "info", "msg": "done", "model": "m", **more}


def test_requests_of_a_structured_log(tmp_path: Path) -> None:
    rows = [
        record(
            place,
            status=200 if place else 500,
            duration_ms=800 + place,
            usage={"completion_tokens": 40},
            finish_reason="length",
        )
        for place in range(9)
    ]
    events = table(tmp_path, rows)
    status = events.metric("status")
    assert status is not None
    assert sorted(set(status.value)) == [200.0, 500.0]
    assert [
        len(series)
        for name in ("completion_tokens", "duration_ms", "finished_by_length")
        for series in events.all_metrics(name)
    ] == [9, 9, 9]
    assert events.get(int(status.event_id[0])).attr("model") == "m"


@pytest.mark.parametrize("more", [{"status": "ok"}, {"latency_ms": 12}, {"note": "status: 200"}])
def test_other_records_are_left(tmp_path: Path, more: dict[str, object]) -> None:
    events = table(tmp_path, [record(place, **more) for place in range(3)])
    assert not {"status", "latency_ms"} & set(events.metric_names)

from __future__ import annotations

import base64
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from device_allocator import MIB, fragmented, leaking, level
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rca.diagnosis import SourceRecord
from rca.events import Event, EventTable
from rca.facts.registry import extract
from rca.ingest.interface import IngestContext, Source
from rca.ingest.read import read_source
from rca.ingest.registry import INGESTORS


def read(file: Path) -> tuple[SourceRecord, EventTable]:
    source = Source(path=file.name, file=file, size=file.stat().st_size)
    record, ingested = read_source(source, INGESTORS, IngestContext())
    return record, EventTable.from_parts([] if ingested is None else [ingested.events], text_sources=0)


def snapshot(content: Any, folder: Path) -> EventTable:
    file = folder / "dump_snapshot.pickle"
    file.write_bytes(pickle.dumps(content))
    record, events = read(file)
    assert record.kind == "memory snapshot", record
    return events


def facts(events: EventTable) -> dict[str, Any]:
    return {name: fact.value for name, fact in extract(events).items() if name.startswith(("memory.", "oom."))}


def one(events: EventTable, name: str) -> Event:
    (event,) = events.named(name, kind="system")
    return event


def test_sums_of_the_segments(tmp_path: Path) -> None:
    events = snapshot(leaking(), tmp_path)
    summary = one(events, "system.memory_summary")
    assert summary.attr("allocated_bytes") == summary.attr("active_bytes") == (60 + 120) * MIB
    assert summary.attr("requested_bytes") == (60 + 120) * MIB - 66 * 100
    assert summary.attr("reserved_bytes") % (20 * MIB) == 0
    assert summary.attr("reserved_bytes") == (
        summary.attr("active_bytes") + summary.attr("inactive_bytes") + summary.attr("free_segment_bytes")
    )
    assert summary.attr("places") == [
        {"where": "job/train.py:44 in log_loss", "bytes": 120 * MIB, "blocks": 60},
        {"where": "job/train.py:5 in build", "bytes": 60 * MIB, "blocks": 6},
    ]
    assert summary.attr("active_peak_bytes") == (60 + 120 + 32) * MIB


def test_a_leak_shows_where_it_grows(tmp_path: Path) -> None:
    found = facts(snapshot(leaking(), tmp_path))
    assert found["memory.floor_rises"] is True
    assert found["memory.growing_place"] == "job/train.py:44 in log_loss"
    assert found["memory.growing_gib"] == pytest.approx(120 / 1024)
    assert found["memory.top_place"] == "job/train.py:44 in log_loss"
    assert found["memory.top_share"] == pytest.approx(2 / 3)
    assert found["memory.snapshot_refused"] == 0
    assert "oom.tried_gib" not in found


def test_level_use_does_not_rise(tmp_path: Path) -> None:
    found = facts(snapshot(level(), tmp_path))
    assert found["memory.floor_rises"] is False
    assert "memory.growing_place" not in found


def test_a_refusal_beside_idle_pieces(tmp_path: Path) -> None:
    events = snapshot(fragmented(), tmp_path)
    refused = one(events, "memory.refused")
    assert refused.attr("tried_bytes") == 16 * MIB
    assert refused.attr("free_bytes") == 0
    assert refused.attr("allocated_bytes") == 40 * MIB
    assert refused.attr("reserved_unallocated_bytes") == 360 * MIB
    assert refused.attr("frames")[0]["function"] == "forward"
    found = facts(events)
    assert found["memory.pieces"] is True
    assert found["memory.largest_free_gib"] == pytest.approx(9 / 1024)
    assert found["oom.tried_gib"] == pytest.approx(16 / 1024)
    assert found["oom.reserved_over_tried"] == 22.5
    assert found["memory.inactive_share"] == 0.9


def test_the_json_form_says_the_same(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    file.write_text(json.dumps(fragmented()))
    record, events = read(file)
    assert record.kind == "memory snapshot"
    assert facts(events) == facts(snapshot(fragmented(), tmp_path))


def test_a_page_of_the_memory_viewer_carries_the_snapshot(tmp_path: Path) -> None:
    raw = pickle.dumps(fragmented())
    packed = base64.b64encode(raw + b"\0" * (3 - len(raw) % 3)).decode()
    script = 'import {add_local_files} from "https://cdn.example.org/pytorch/torch/utils/viz/MemoryViz.js"'
    files = json.dumps([{"name": "snapshot.pickle", "base64": packed}])
    file = tmp_path / "timeline.html"
    file.write_text(f"<html><script>\n{script}\nconst local_files = {files}\n</script></html>")
    record, events = read(file)
    assert record.kind == "memory snapshot"
    assert facts(events) == facts(snapshot(fragmented(), tmp_path))
    file.write_text(f"<html><script>\n{script}\nconst local_files = {files[:-100]}")
    assert read(file)[0].status == "skipped"


def test_a_snapshot_without_history(tmp_path: Path) -> None:
    found = facts(snapshot({**level(), "device_traces": [[]]}, tmp_path))
    assert found["memory.snapshot_gib"] == pytest.approx(60 / 1024)
    assert "memory.floor_rises" not in found
    assert "memory.snapshot_refused" not in found


def test_older_snapshots_name_no_device(tmp_path: Path) -> None:
    content = level()
    for segment in content["segments"]:
        del segment["device"], segment["segment_pool_id"], segment["frames"]
    assert one(snapshot(content, tmp_path), "system.memory_summary").attr("device") == 0


def test_values_of_the_wrong_kind_are_passed_over(tmp_path: Path) -> None:
    own: list[Any] = []
    own.append(own)
    block = {"size": 2**90, "state": own, "frames": own}
    segments = [own, None, {"total_size": "x", "device": -1, "blocks": own}, {"total_size": 5, "blocks": [block, own]}]
    trace = [own, {"action": own, "size": -5}, {"action": "oom"}, {"action": "alloc", "addr": own, "size": 7}]
    content = {"segments": segments, "device_traces": [trace, own, None], "allocator_settings": own}
    events = snapshot(content, tmp_path)
    assert events.named("system.memory_summary")[0].attr("reserved_bytes") == 5


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_changed_snapshot_is_read_or_refused(data: st.DataObject, tmp_path: Path) -> None:
    raw = bytearray(pickle.dumps(level(2)))
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(40, len(raw) - 1))] = data.draw(st.integers(0, 255))
    file = tmp_path / "dump_snapshot.pickle"
    file.write_bytes(bytes(raw))
    record, _ = read(file)
    assert record.status in {"read", "skipped"}


@pytest.mark.slow
def test_tools_of_pytorch_accept_the_made_snapshots() -> None:
    pytest.importorskip("torch")
    from torch.cuda import _memory_viz

    content = fragmented()
    assert "MiB" in _memory_viz.segsum(content)
    assert "OutOfMemoryError # 16.0MiB requested" in _memory_viz.trace(content)
    assert "add_local_files" in _memory_viz.trace_plot(content)
    assert "add_local_files" in _memory_viz.segment_plot(content)
    lines = _memory_viz.memory(content, format_flamegraph=lambda text: text)
    assert "active_allocated" in lines
    assert "train.py:50:cache" in lines

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rca.events import Event, EventTable
from rca.ingest.dumps.flight_entries import MAX_ENTRIES
from rca.ingest.dumps.flight_recorder import FlightRecorderIngestor
from rca.ingest.interface import IngestContext, Source
from rca.ingest.read import read_source
from rca.ingest.registry import INGESTORS
from rca.recording import Call, Recording, pack, read_ranks, unpack, write_ranks

RECORDED = Path(__file__).parents[2] / "facts" / "flight_dumps"


def source(file: Path, rank: int | None = None) -> Source:
    return Source(path=file.name, file=file, size=file.stat().st_size, rank=rank)


def read(file: Path) -> tuple[str, list[Event]]:
    record, ingested = read_source(source(file), INGESTORS, IngestContext())
    return record.kind, [] if ingested is None else list(EventTable.from_parts([ingested.events]).events)


def recordings(events: list[Event]) -> list[Event]:
    return [event for event in events if event.name == "collective.recording"]


def test_a_recorded_pickle() -> None:
    kind, events = read(RECORDED / "skipped" / "nccl_trace_rank_2")
    assert kind == "flight recorder"
    assert [event.rank for event in events] == [2, 2]
    dump, group = events
    assert dump.attr("version") == "2.10"
    assert dump.value == 3
    assert (group.attr("description"), group.attr("last"), group.attr("pending")) == ("default_pg", 3, 3)
    assert group.attr("enqueued") == 3
    assert group.attr("frames")[-1]["function"] == "all_gather"
    assert group.text.startswith(
        "In group default_pg: all_gather #3 is not over, called at job/train.py:73 in evaluate"
    )
    found = unpack(group.attr("entries"))
    assert found is not None
    assert [found.calls[index].op for index in found.call] == ["all_reduce", "all_reduce", "all_gather"]
    assert found.state == "rrq"


def test_the_json_form_says_the_same(tmp_path: Path) -> None:
    content = pickle.loads((RECORDED / "two_groups" / "nccl_trace_rank_2").read_bytes())
    status = {key: {name: str(value) for name, value in item.items()} for key, item in content["pg_status"].items()}
    for entry in content["entries"]:
        entry.pop("frames")
        entry |= {"time_discovered_started_ns": 0, "time_discovered_completed_ns": 0}
    plain, other = tmp_path / "nccl_trace_rank_2", tmp_path / "fr_rank2.json"
    plain.write_bytes(pickle.dumps(content, 2))
    other.write_text(json.dumps({**content, "pg_status": status}, sort_keys=True))
    (kind, first), (_, second) = read(plain), read(other)
    assert kind == "flight recorder"
    assert [(event.name, event.rank, event.text, event.attrs) for event in first] == [
        (event.name, event.rank, event.text, event.attrs) for event in second
    ]
    assert [event.attr("ranks") for event in recordings(first)] == ["0-3", "2,3", "0,2"]


@pytest.mark.parametrize("listed", [True, False])
def test_versions_before_two(listed: bool, tmp_path: Path) -> None:
    entries = [
        {
            "frames": [],
            "record_id": 40 + seq,
            "pg_id": 3,
            "seq_id": seq,
            "profiling_name": "nccl:all_reduce",
            "time_created_ns": 5_000,
            "input_sizes": [[2, 2]],
            "output_sizes": [[2, 2]],
            "state": "completed" if seq < 5 else "started",
        }
        for seq in range(1, 6)
    ]
    file = tmp_path / "trace_17"
    file.write_bytes(pickle.dumps(entries if listed else {"version": "1.0", "entries": entries}, 2))
    _, (dump, group) = read(file)
    assert (dump.rank, dump.attr("overwritten")) == (17, True)
    assert (group.attr("group"), group.attr("pending")) == ("3", 5)


def test_an_empty_dump_is_a_rank_that_did_not_finish_writing(tmp_path: Path) -> None:
    file = tmp_path / "nccl_trace_rank_5"
    file.touch()
    kind, (event,) = read(file)
    assert (kind, event.rank, event.attr("status")) == ("flight recorder", 5, "empty")


def test_a_pickle_that_names_a_function_is_not_loaded(tmp_path: Path) -> None:
    file = tmp_path / "nccl_trace_rank_0"
    file.write_bytes(b"\x80\x02X\x09\x00\x00\x00pg_configcos\nsystem\n(S'true'\ntR.")
    record, ingested = read_source(source(file), INGESTORS, IngestContext())
    assert ingested is None
    assert (
        record.why
        == "nccl_trace_rank_0 is a pickle that names os.system, which is not a plain type; it was not loaded."
    )


def test_other_pickles_go_to_other_readers(tmp_path: Path) -> None:
    file = tmp_path / "optimizer.pkl"
    file.write_bytes(pickle.dumps({"lr": 0.1}))
    assert read(file)[0] == "weights (torch)"


def test_only_the_newest_entries_of_a_group_are_kept(tmp_path: Path) -> None:
    entry = {"process_group": ("0", ""), "profiling_name": "nccl:barrier", "state": "completed"}
    file = tmp_path / "nccl_trace_rank_0"
    count = MAX_ENTRIES + 500
    file.write_bytes(
        pickle.dumps({"pg_config": {}, "entries": [{**entry, "collective_seq_id": n} for n in range(count)]})
    )
    (group,) = recordings(read(file)[1])
    assert (group.attr("first"), group.attr("last")) == (500, count - 1)


def test_values_of_the_wrong_kind_are_passed_over(tmp_path: Path) -> None:
    own: list[Any] = []
    own.append(own)
    entries = [
        {"process_group": own, "profiling_name": 7, "collective_seq_id": "x", "input_sizes": own, "frames": [own, {}]},
        {
            "process_group": (),
            "profiling_name": "nccl:send 1->",
            "collective_seq_id": -4,
            "input_sizes": [[2**80, None]],
        },
        {"process_group": ("0", "g"), "profiling_name": "nccl:all_reduce", "collective_seq_id": 2**70, "state": own},
        {"process_group": ("0", "g"), "profiling_name": "nccl:all_reduce", "collective_seq_id": 4, "input_dtypes": own},
        own,
        None,
    ]
    file = tmp_path / "nccl_trace_rank_0"
    file.write_bytes(pickle.dumps({"pg_config": {"0": own, "g": {"ranks": "[1, x, 2**9]"}}, "entries": entries}, 2))
    events = recordings(read(file)[1])
    assert [event.attr("last") for event in events if event.attr("group") == "0"][-1] == 4


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_changed_dump_is_read_or_refused(data: st.DataObject, tmp_path: Path) -> None:
    raw = bytearray((RECORDED / "two_groups" / "nccl_trace_rank_0").read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(2, len(raw) - 1))] = data.draw(st.integers(0, 255))
    file = tmp_path / "nccl_trace_rank_0"
    file.write_bytes(bytes(raw[: data.draw(st.integers(100, len(raw)))]))
    record, ingested = read_source(source(file, 0), [FlightRecorderIngestor()], IngestContext())
    assert (record.status == "read") == (ingested is not None)
    assert record.why is None or len(record.why) < 400


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ((), ""),
        ((3,), "3"),
        ((0, 1), "0,1"),
        (tuple(range(8)), "0-7"),
        ((0, 8, 16, 24, 3, 5), "0-24:8,3,5"),
        ((2, 1, 0), "2,1,0"),
    ],
)
def test_ranks_are_written_in_their_order(ranks: tuple[int, ...], text: str) -> None:
    assert write_ranks(ranks) == text
    assert read_ranks(text) == ranks


@pytest.mark.parametrize("text", ["0-99999999:1", "a", "1-2:0", None, "5-", "0-9:²"])
def test_ranks_that_are_none(text: Any) -> None:
    assert read_ranks(text) in ((), (5,))


def test_packed_recordings() -> None:
    call = Call("all_reduce", ((2, 3),), ((2, 3),), ("Float",), ("Float",), "a.py:1 in f")
    recording = Recording((call,), (1, 2, 3, 9), (0, 0, 0, 0), "ccsq")
    assert unpack(pack(recording)) == recording
    assert unpack(pack(recording._replace(seq=(1, 2, 3, 4)))) == recording._replace(seq=range(1, 5))
    assert unpack("no recording") is None
    assert unpack(pack(recording._replace(call=(0, 0, 0, 1)))) is None

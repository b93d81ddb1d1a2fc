from __future__ import annotations

import json
import math
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rca.errors import UnreadableSource
from rca.ingest.traces import trace_json
from rca.ingest.traces.trace_json import TraceEvent, TraceText, decode_piece


def event(number: int, **more: Any) -> dict[str, Any]:
    args = {"correlation": number, "nested": [{"a": 1}, {"b": [{"c": 2}]}], "text": '} , { ] \\ " é'}
    base = {"ph": "X", "cat": "cpu_op", "name": f"op{number}", "pid": 1, "tid": 2, "ts": number, "dur": 0.5}
    return base | {"args": args} | more


EVENTS = [event(number) for number in range(30)]
WRAPPED = json.dumps({"schemaVersion": 1, "traceEvents": EVENTS, "traceName": "x", "baseTimeNanoseconds": 5}, indent=1)
LISTED = json.dumps(EVENTS)


@pytest.fixture(params=[200, 1000, 1 << 22])
def piece(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(trace_json, "_PIECE", request.param)
    return int(request.param)


def read(data: str | bytes) -> tuple[list[TraceEvent], TraceText]:
    text = TraceText(data.encode() if isinstance(data, str) else data)
    return [item for batch in text.batches() for item in batch], text


def numbers(events: list[TraceEvent]) -> list[int]:
    return [int(item.name.removeprefix("op")) for item in events]


@pytest.mark.usefixtures("piece")
@pytest.mark.parametrize(
    "document", [WRAPPED, LISTED, "\ufeff \n" + WRAPPED], ids=["object", "list", "byte order mark"]
)
def test_all_events_in_order(document: str) -> None:
    events, text = read(document)
    assert numbers(events) == list(range(30))
    assert [item.args.correlation for item in events if item.args] == list(range(30))
    assert text.problems == []
    assert text.events == 30


@pytest.mark.usefixtures("piece")
def test_what_stands_before_and_behind_the_events() -> None:
    _, text = read(WRAPPED)
    header = {key: value for key, value in text.header.items() if key != "traceEvents"}
    assert header == {"schemaVersion": 1, "traceName": "x", "baseTimeNanoseconds": 5}


@pytest.mark.usefixtures("piece")
@pytest.mark.parametrize("document", [WRAPPED, LISTED])
def test_cut_at_every_byte_keeps_every_whole_event(document: str) -> None:
    data = document.encode()
    decoder = json.JSONDecoder()
    ends, place = [], document.index('{"ph"') if document is LISTED else document.index("{", 1)
    for _ in EVENTS:
        _, end = decoder.raw_decode(document, place)
        ends.append(len(document[:end].encode()))
        place = document.find("{", end)
    first = data.index(b"[") + 1
    for cut in range(first, len(data), 23):
        events, text = read(data[:cut])
        whole = sum(end <= cut for end in ends)
        assert numbers(events) == list(range(whole)), cut
        if cut < ends[-1] and document is WRAPPED:
            assert f"{whole} whole events" in text.problems[0]


@pytest.mark.usefixtures("piece")
@pytest.mark.parametrize(
    "broken",
    [
        b'{"ph": "X", "cat": "cpu_op", "name": "un", "escaped", "ts": 1, "dur": 1}',
        b'{"ph": "X", "name": "never closed", "args": {"a": [1, 2}',
        b'{"ph": ]}',
        b"{nothing}",
    ],
)
def test_an_event_that_is_no_json_costs_only_itself(broken: bytes) -> None:
    middle = json.dumps(EVENTS[15]).encode()
    events, text = read(LISTED.encode().replace(middle, broken))
    found = numbers(events)
    assert set(range(30)) - set(found) <= {14, 15, 16}
    assert 15 not in found
    assert "no event" in text.problems[0]


def test_reading_stops_where_most_is_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_json, "_MAX_DROPPED", 20)
    monkeypatch.setattr(trace_json, "_PIECE", 200)
    events, text = read(LISTED[:-1] + ", {broken}" * 500)
    assert numbers(events) == list(range(30))
    assert "Reading stopped at byte" in text.problems[0]
    assert int(text.problems[1].split()[0]) < 60


def test_reading_stops_in_empty_objects_and_one_at_the_end_is_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(LISTED[:-1] + ",{}]")[1].problems == []
    monkeypatch.setattr(trace_json, "_MAX_DROPPED", 20)
    monkeypatch.setattr(trace_json, "_PIECE", 200)
    events, text = read(LISTED[:-1] + ",{}" * 5000 + "]")
    assert numbers([item for item in events if item.ph]) == list(range(30))
    assert "most of the rest is no event" in text.problems[0]
    assert len(events) < 200


def test_reading_stops_where_there_is_no_event_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("_PIECE", 200), ("_MAX_PIECE", 800), ("_MAX_BARREN", 4_000)):
        monkeypatch.setattr(trace_json, name, size)
    events, text = read(LISTED[:-1] + ',{"ph":"X","name":"' + "x" * 50_000)
    assert numbers(events) == list(range(30))
    assert int(text.problems[0].split()[4].strip(":").replace(",", "")) < 15_000


def test_reading_stops_where_too_much_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_json, "_MAX_TRIES", 500)
    monkeypatch.setattr(trace_json, "_PIECE", 200)
    events, text = read(LISTED[:-1] + ',{"ph":"X","name":"a"b"c"}' * 5_000 + "]")
    assert numbers(events[:30]) == list(range(30))
    assert len(events) < 200
    assert "damaged" in text.problems[0]


def test_a_row_of_backslashes_takes_no_more_memory_than_it_is_long() -> None:
    tracemalloc.start()
    try:
        decode_piece(b'{"ph":"X","name":"' + b"\\" * (1 << 20))
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_reading_stops_after_so_many_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_json, "MAX_EVENTS", 8)
    monkeypatch.setattr(trace_json, "_PIECE", 200)
    events, text = read(LISTED)
    assert 8 <= len(events) < 30
    assert f"after {len(events)} events" in text.problems[0]


@pytest.mark.usefixtures("piece")
@pytest.mark.parametrize(
    ("written", "name"),
    [
        (b'"op3\x01\n"', "op3  "),
        (b'"op3\xff\xfe"', "op3??"),
        (b'"C:\\Users\\x"', "C:/Users/x"),
        (b'"op\\ud800"', "op/ud800"),
        (b'"f("a"): "b" and "c""', "f('a'): 'b' and 'c'"),
    ],
    ids=["control characters", "no utf-8", "single backslash", "lone surrogate", "quotes"],
)
def test_names_that_json_forbids_are_repaired(written: bytes, name: str) -> None:
    events, text = read(LISTED.encode().replace(b'"op3"', written))
    assert len(events) == 30
    assert events[3].name == name
    assert text.problems == []


@pytest.mark.parametrize("bare", [b"nan", b"-nan", b"NaN", b"inf", b"-Infinity", b"N/A"])
def test_bare_numbers_that_are_none(bare: bytes) -> None:
    events, _ = read(LISTED.encode().replace(b'"dur": 0.5', b'"dur": ' + bare, 1))
    assert [item.dur for item in events] == [-1.0] + [0.5] * 29


def test_fields_of_other_types_are_read_where_they_can_be() -> None:
    odd = [
        event(0, ts="12.5", dur=None, tid="stream 7"),
        event(1, pid=None, args="text"),
        event(2, args={"correlation": "9", "Device Type": 1.0, "Collective name": 7}),
        event(3, cat=None, name=17, ts=10**400),
        event(4, args={"correlation": 2**80}),
    ]
    events, _ = read(json.dumps(odd))
    assert [(item.ts, item.dur, item.tid) for item in events[:1]] == [(12.5, -1.0, "stream 7")]
    assert events[2].args is not None
    assert (events[2].args.correlation, events[2].args.device_type, events[2].args.collective) == (9, 1, "7")
    assert (events[3].name, events[3].cat, events[3].ts) == ("17", "", -1.0)
    assert events[4].args is not None
    assert events[4].args.correlation == -1


def test_items_that_are_no_objects_are_left_out() -> None:
    assert numbers(decode_piece(b'{"name": "op1"}, 5, null, {"name": "op2"}').events) == [1, 2]


@pytest.mark.parametrize("document", ['{"schema": "1.0", "nodes": []}', '{"traceEvents": null}', '"text"', "{", ""])
def test_a_document_without_events_is_unreadable(document: str) -> None:
    with pytest.raises(UnreadableSource, match="no list of traceEvents"):
        TraceText(document.encode())


@pytest.mark.parametrize("document", ["[]", '{"traceEvents": []}', "[", '{"traceEvents": [\n'])
def test_no_events(document: str) -> None:
    assert read(document)[0] == []


def test_large_values_behind_the_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_json, "_PIECE", 300)
    frames = {str(number): {"name": f"f{number}"} for number in range(200)}
    events, text = read(json.dumps({"traceEvents": EVENTS, "stackFrames": frames, "samples": [{"a": 1}, {"a": 2}]}))
    assert numbers(events) == list(range(30))
    assert len(text.header["stackFrames"]) == 200
    assert text.problems == []


def test_times_are_floats() -> None:
    (first, *_), _ = read('[{"ts": 1679055439724719, "dur": 3}, {"ts": 12.25}]')
    assert (first.ts, first.dur) == (1679055439724719.0, 3.0)
    assert math.isclose(read('[{"ts": 12.25}]')[0][0].ts, 12.25)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(WRAPPED)), st.binary(max_size=12), st.integers(0, 30)), max_size=6))
def test_any_damage_gives_events_or_a_reason(edits: list[tuple[int, bytes, int]]) -> None:
    data = WRAPPED.encode()
    for at, junk, lost in edits:
        data = data[:at] + junk + data[at + lost :]
    try:
        events, text = read(data)
    except UnreadableSource:
        return
    assert len(events) == text.events

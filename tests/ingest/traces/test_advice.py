from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rca.errors import UnreadableSource
from rca.ingest.traces import advice as trace_advice
from rca.ingest.traces.advice import modernised, read_advice


def span(category: str, name: str, start: float, duration: float, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": duration, "args": args}


def starved(steps: int = 3) -> list[dict[str, Any]]:
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    events = []
    for number in range(steps):
        begin = 1000.0 * number
        events += [
            span("user_annotation", f"ProfilerStep#{number}", begin, 1000, **{"External id": number * 10 + 1}),
            span("user_annotation", loader, begin, 400, **{"External id": number * 10 + 2}),
            span("cpu_op", "aten::mm", begin + 400, 500, **{"External id": number * 10 + 3}),
        ]
    return events


def test_sees_the_data_loader_of_torch_2() -> None:
    found = read_advice(json.dumps({"traceEvents": starved()}).encode())
    ((topic, text, share),) = found.recommendations
    assert (topic, share) == ("data_loading", 0.4)
    assert "40.0% of the step time is in DataLoader" in text
    assert "<" not in text
    assert found.shares["dataloader"] == pytest.approx(0.4)
    assert found.shares["cpuop"] == pytest.approx(0.5)


def test_as_shipped_the_package_says_zero() -> None:
    data = pytest.importorskip("torch_tb_profiler.profiler.data")
    roles = pytest.importorskip("torch_tb_profiler.profiler.event_parser")
    profile = data.RunProfileData.from_json("worker", "0", {"traceEvents": starved()})
    assert profile.avg_costs.costs[roles.ProfileRole.DataLoader] == 0


def test_categories_are_renamed_and_hopeless_events_left_out() -> None:
    events = [
        *starved(1),
        span("cuda_driver", "cuLaunchKernel", 5, 1),
        span("gpu_user_annotation", "ProfilerStep#0", 5, 1),
        span("user_annotation", "mine", 5, 1),
        {"ph": "X", "cat": "cpu_op", "name": "no duration", "ts": 1},
        {"ph": "X", "name": "no category", "ts": 1, "dur": 2},
        {"ph": "s", "cat": "fwdbwd", "id": 1, "ts": 1},
        "no event",
    ]
    found = [(event.get("cat"), event.get("name")) for event in modernised(events)["traceEvents"]]
    assert found[3:] == [("Runtime", "cuLaunchKernel"), ("user_annotation", "mine"), ("forward_backward", None)]
    assert found[1][0] == "cpu_op"


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"traceEvents": None},
        {"traceEvents": [span("kernel", "only", 1, 1)]},
        {"traceEvents": [span("cpu_op", "ProfilerStep#0", 1, 0)]},
        {"traceEvents": [*starved(), span("cpu_op", "ProfilerStep#x", 1, 1)]},
        {"traceEvents": [*starved(), {**span("cpu_op", "aten::mm", 1, 1), "tid": "main"}]},
        {"traceEvents": [*starved(), {**span("cpu_op", "aten::mm", 1, 1), "ts": "1"}]},
        {"traceEvents": [*starved(), {**span("kernel", "k", 1, 1), "args": None}]},
        {"traceEvents": starved(), "deviceProperties": [None]},
        "text",
        5,
    ],
)
def test_what_the_package_chokes_on_is_a_known_error(document: Any) -> None:
    with pytest.raises(UnreadableSource, match="torch-tb-profiler could not read the trace"):
        read_advice(json.dumps(document).encode())


def test_broken_json_is_a_known_error() -> None:
    with pytest.raises(UnreadableSource, match="DecodeError"):
        read_advice(b'{"traceEvents": [')


def test_large_traces_are_not_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_advice, "LARGEST", 10)
    with pytest.raises(UnreadableSource, match="not asked"):
        read_advice(json.dumps({"traceEvents": starved()}).encode())


def test_the_package_stays_quiet(caplog: pytest.LogCaptureFixture) -> None:
    events = [*starved(), span("cuda_runtime", "cudaLaunchKernel", 5, 1, **{"External id": 77})]
    with caplog.at_level(logging.DEBUG):
        read_advice(json.dumps({"traceEvents": events}).encode())
    assert caplog.records == []


VALUES = st.one_of(st.none(), st.integers(-5, 5000), st.text(max_size=5), st.floats(allow_nan=False), st.just([]))


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(
            st.integers(0, 8),
            st.sampled_from(["ph", "cat", "name", "ts", "dur", "tid", "pid", "args", "extra"]),
            st.one_of(VALUES, st.dictionaries(st.sampled_from(["External id", "correlation", "device"]), VALUES)),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_odd_events_give_advice_or_a_known_error(edits: list[tuple[int, str, Any]]) -> None:
    events = starved()
    for place, key, value in edits:
        events[place][key] = value
    try:
        read_advice(json.dumps({"traceEvents": events}).encode())
    except UnreadableSource:
        return

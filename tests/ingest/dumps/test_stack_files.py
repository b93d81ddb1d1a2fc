from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def frame(name: str, file: str, line: int, **variables: str) -> dict[str, Any]:
    held = [{"name": key, "addr": 1, "arg": True, "repr": value} for key, value in variables.items()]
    return {
        "name": name,
        "filename": file,
        "module": None,
        "short_filename": file,
        "line": line,
        "locals": held or None,
    }


THREADS: list[dict[str, Any]] = [
    {
        "pid": 9213,
        "thread_id": 140467522320064,
        "thread_name": "QueueFeederThread",
        "os_thread_id": 9433,
        "active": False,
        "owns_gil": False,
        "frames": [frame("Condition.wait", "/opt/lib/python3.11/threading.py", 327)],
        "process_info": None,
    },
    {
        "pid": 9213,
        "thread_id": 140468192799616,
        "thread_name": "MainThread",
        "os_thread_id": 9213,
        "active": True,
        "owns_gil": True,
        "frames": [
            frame("pthread_cond_wait", "libc.so.6", 0),
            frame(
                "all_gather_object", "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", 9
            ),
            frame("main", "/home/u/train.py", 29, rank="4"),
            frame("<module>", "/home/u/train.py", 40),
        ],
        "process_info": None,
    },
]


def test_threads_become_one_process(read: Any) -> None:
    found = read("py-spy.json", json.dumps(THREADS, indent=2))
    event = found.one("process.stack")
    assert found.record.kind == "stack dump"
    assert (event.rank, event.attr("pid"), event.attr("status")) == (4, 9213, "active+gil")
    assert (event.attr("state"), event.attr("operation")) == ("collective", "all_gather_object")
    assert event.attr("user_frame")["line"] == 29


def test_a_dump_without_frames_says_so(read: Any) -> None:
    found = read("a.json", json.dumps([{**THREADS[0], "frames": []}]))
    assert found.record.status == "skipped"
    assert "without a frame" in found.record.why


VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
)


@pytest.mark.parametrize("key", sorted(THREADS[1]))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES, inner=st.sampled_from(["name", "filename", "line", "locals"]))
def test_odd_values_never_fail(read: Any, key: str, value: object, inner: str) -> None:
    frames = [{**item, inner: value} for item in THREADS[1]["frames"]]
    read("a.json", json.dumps([{**THREADS[1], key: value}, {**THREADS[1], "frames": frames}, value]))

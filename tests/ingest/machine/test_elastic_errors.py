"""error.json as torchelastic of torch 2.13 writes it, and its older forms."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

STACK = (
    "Traceback (most recent call last):\n"
    '  File "/opt/venv/lib/python3.11/site-packages/torch/distributed/elastic/multiprocessing/errors/__init__.py", '
    "line 367, in wrapper\n    return f(*args, **kwargs)\n           ^^^^^^^^^^^^^^^^^^\n"
    '  File "/home/u/fit.py", line 10, in main\n    raise KeyError("labels")\nKeyError: \'labels\'\n'
)
AT = 1_796_071_026


def error(**inner: Any) -> dict[str, Any]:
    return {
        "message": {
            "message": "KeyError: 'labels'",
            "extraInfo": {"py_callstack": STACK, "timestamp": str(AT)},
            **inner,
        }
    }


def test_the_traceback_has_its_time_and_its_rank(read: Any) -> None:
    found = read("logs/job/attempt_0/3/error.json", error())
    event = found.one("KeyError")
    assert found.record.kind == "torchelastic error"
    assert (event.rank, event.line, event.time, event.text) == (3, 1, AT * 10**6, "'labels'")
    assert event.attr("user_frame")["line"] == 10


@pytest.mark.parametrize(
    "document",
    [
        {"message": "ValueError: no such shard", "timestamp": AT},
        {"message": {"message": "ValueError: no such shard", "extraInfo": {"timestamp": AT}}},
        {"message": "ValueError: no such shard", "extraInfo": {"timestamp": str(AT), "py_callstack": ""}},
    ],
)
def test_a_message_alone(read: Any, document: dict[str, Any]) -> None:
    event = read("rank_1/error.json", document).one("ValueError")
    assert (event.text, event.time) == ("no such shard", AT * 10**6)


def test_a_stack_far_behind_the_head(read: Any) -> None:
    found = read("error.json", error(message="x" * 9000))
    assert found.one("KeyError").attr("user_frame")["line"] == 10


def test_an_empty_error_says_so(read: Any) -> None:
    found = read("error.json", {"message": {"extraInfo": {"py_callstack": ""}}})
    assert "neither" in found.record.why


VALUES = st.none() | st.integers() | st.floats() | st.text(max_size=20) | st.lists(st.text(max_size=3), max_size=2)
OBJECTS = st.dictionaries(st.sampled_from(["message", "extraInfo", "py_callstack", "timestamp"]), VALUES, max_size=4)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=st.dictionaries(st.sampled_from(["message", "extraInfo", "timestamp"]), VALUES | OBJECTS, max_size=3))
def test_any_values(read: Any, document: dict[str, Any]) -> None:
    read("error.json", json.dumps({"message": document.pop("message", None), **document}))

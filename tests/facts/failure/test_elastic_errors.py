"""The worker whose error is the earliest failed first."""

from __future__ import annotations

from typing import Any


def error(second: int, name: str) -> dict[str, Any]:
    stack = f'Traceback (most recent call last):\n  File "/home/u/fit.py", line 10, in main\n    go()\n{name}\n'
    return {
        "message": {"message": name, "extraInfo": {"py_callstack": stack, "timestamp": str(1_796_071_020 + second)}}
    }


def test_the_earliest_time_is_the_first_failure(reported: Any) -> None:
    frame = '  File "/home/u/fit.py", line 10, in main\n    go()\n'
    stack = f"Traceback (most recent call last):\n{frame}KeyError: 'labels'\n"
    found = reported(
        {
            "job/attempt_0/0/error.json": error(9, "KeyError: 'labels'"),
            "job/attempt_0/0/stderr.log": stack,
            "job/attempt_0/1/error.json": error(4, "ValueError: bad shard"),
            "job/attempt_0/2/error.json": error(7, "KeyError: 'labels'"),
        }
    )
    assert (found["failure.rank"], found["failure.exception"]) == (1, "ValueError")
    assert found["failure.lead_s"] == 3

"""Messages as comet_ml 3.58 writes them into the archive of an offline experiment."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

AT = 1_796_073_818_497


def message(kind: str, **payload: Any) -> str:
    return json.dumps({"payload": {"local_timestamp": AT, **payload}, "type": kind}, separators=(",", ":")) + "\n"


def metric(name: str, value: Any, step: int) -> str:
    return message("metric_msg", metric={"epoch": None, "metricName": name, "metricValue": value, "step": step})


LINES = [
    message("file_name", file_name="/home/u/train.py"),
    message("installed_packages", installed_packages=["torch==2.13.0", "flash_attn==2.8.1", "broken"]),
    message(
        "parameter_msg", param={"paramName": "learning_rate", "paramValue": 0.0003, "source": "manual", "step": None}
    ),
    message("parameter_msg", param={"paramName": "curr_step", "paramValue": 10, "source": "auto-logged", "step": 10}),
    metric("loss", 2.0, 0),
    metric("loss", 1.9, 10),
    metric("eval_loss", "NaN", 10),
    message("standard_output", output="step 20 lo", stderr=False),
    message("standard_output", output='Traceback (most recent call last):\n  File "/home/u/train.py"', stderr=True),
    message("standard_output", output="ss 1.8\n", stderr=False),
    message("standard_output", output=", line 7, in main\n    go()\nValueError: bad\n", stderr=True),
]


def test_everything_that_was_logged(read: Any) -> None:
    found = read("comet/messages.json", "".join(LINES))
    assert found.record.kind == "comet messages"
    assert sorted(found.metrics("loss")) == [(0, 2.0), (10, 1.9), (20, 1.8)]
    assert len(found.metrics("eval_loss")) == 1
    assert found.config() == {"learning_rate": 0.0003}
    assert found.packages() == {"torch": "2.13.0", "flash-attn": "2.8.1"}
    event = found.one("ValueError")
    assert (event.text, event.line, event.time) == ("bad", 11, AT * 1000)
    assert event.attr("user_frame")["line"] == 7


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.text(max_size=3))
KEYS = st.sampled_from(["metric", "param", "output", "stderr", "installed_packages", "local_timestamp"])
INNER = st.dictionaries(st.sampled_from(["metricName", "metricValue", "step", "paramName", "paramValue"]), VALUES)
KINDS = st.sampled_from(["metric_msg", "parameter_msg", "standard_output", "x"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(KINDS, st.dictionaries(KEYS, VALUES | INNER, max_size=4)), max_size=5))
def test_any_messages(read: Any, rows: list[tuple[str, dict[str, Any]]]) -> None:
    text = "".join(json.dumps({"payload": payload, "type": kind}) + "\n" for kind, payload in rows)
    read("messages.json", LINES[0] + text)

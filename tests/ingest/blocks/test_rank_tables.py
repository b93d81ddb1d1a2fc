"""Tables of times with a row a rank."""

from __future__ import annotations

from typing import Any

import pytest

STROKES = """== step 50 timing (ms) ==
| rank | host | data | compute | wait | step |
|------|------|------|---------|------|------|
|    0 | a    |  4.0 |   240.0 | 396.0| 640.0|
|    1 | b    |  4.1 |   610.0 |  25.9| 640.0|
"""
BLANKS = """step 50
rank  fwd_ms  bwd_ms  comm_ms
0     80.0    160.0   396.0
1     200.0   410.0   25.9
"""


def test_every_rank_has_its_times_in_seconds(read: Any) -> None:
    found = read("train.log", STROKES)
    rows = [row for row in found.table.table.to_pylist() if row["name"] == "table.compute"]
    assert [(row["rank"], row["step"], row["value"], row["unit"]) for row in rows] == [
        (0, 50, 0.24, "s"),
        (1, 50, 0.61, "s"),
    ]
    assert found.metrics("table.step_time") == [(50, 0.64), (50, 0.64)]
    assert found.metrics("table.data_time")[0] == (50, 0.004)


def test_units_may_stand_in_the_names(read: Any) -> None:
    assert read("train.log", BLANKS).metrics("table.comm") == [(50, 0.396), (50, 0.0259)]


@pytest.mark.parametrize(
    "text",
    [
        "rank  samples  loss  step\n0  12  3.2  50\n1  12  3.1  50\n",
        "GPU  Name  Persistence-M  time\n0  A100  On  5\n1  A100  On  6\n",
        "rank  compute  wait\n0  0.2  0.1\n1  0.2  0.1\n",
    ],
)
def test_without_times_of_a_unit_nothing_is_read(read: Any, text: str) -> None:
    found = read("train.log", text)
    assert not any(name.startswith("table.") for name in found.table.metric_names)

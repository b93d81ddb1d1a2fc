"""Timers of a step in one row."""

from __future__ import annotations

import pytest

from rca.ingest.training_metrics.timers import timers


def test_the_row_of_deepspeed_is_read_in_seconds() -> None:
    line = "[Rank 0] time (ms) | fwd_microstep: 360.58 | bwd_microstep: 7583.68 | bwd_allreduce_microstep: 6895.56 | step: 9"  # noqa: E501
    found = {pair.name: pair.value for pair in timers(line)}
    assert found == pytest.approx(
        {
            "timer.fwd_microstep": 0.36058,
            "timer.bwd_microstep": 7.58368,
            "timer.bwd_allreduce_microstep": 6.89556,
            "timer.step": 0.009,
        }
    )


@pytest.mark.parametrize("line", ["time (ms) | ", "elapsed time (ms) 12 | loss: 3.2", "time (ms) | loss: high | x"])
def test_rows_without_timers_give_nothing(line: str) -> None:
    assert timers(line) == []

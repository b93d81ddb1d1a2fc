"""What a step is made of, by printed timers."""

from __future__ import annotations

import pytest

from .tables import Run


def test_timers_inside_others_are_not_counted_twice() -> None:
    run = Run().curves(
        {
            "timer.fwd_microstep": [0.3] * 5,
            "timer.bwd_microstep": [6.6] * 5,
            "timer.bwd_inner_microstep": [0.6] * 5,
            "timer.bwd_allreduce_microstep": [6.0] * 5,
            "timer.step_microstep": [0.1] * 5,
        }
    )
    assert run.values()["step.communication_share"] == pytest.approx(6.0 / 7.0)


def test_without_a_timer_of_collectives_nothing_is_said() -> None:
    assert "step.communication_share" not in Run().curves({"timer.fwd": [1.0], "timer.bwd": [2.0]}).values()

"""What a step is made of, by printed timers."""

from __future__ import annotations

import pytest

from ..tables import Run


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


def test_columns_that_add_up_to_another_are_its_parts() -> None:
    run = Run()
    builder = run.source("timing.csv")
    for row in range(8):
        parts = {"fetch_ms": 240.0 + row, "to_gpu_ms": 4.0, "fwd_bwd_ms": 70.0, "allreduce_ms": 6.0}
        for name, value in {**parts, "iter_ms": sum(parts.values()) + 1}.items():
            builder.add(kind="metric", name=name, value=value, step=row * 10, line=row + 2, unit="ms")
    found = run.values()
    assert found["step.data_share"] == pytest.approx(0.75, abs=0.02)
    assert found["step.communication_share"] == pytest.approx(0.02, abs=0.01)


def test_times_that_do_not_add_up_are_no_parts() -> None:
    run = Run()
    builder = run.source("timing.csv")
    for row in range(8):
        for name, value in {"load_s": 2.0, "decode_s": 1.0, "total_s": 9.0}.items():
            builder.add(kind="metric", name=name, value=value, step=row, line=row + 2, unit="s")
    assert "step.data_share" not in run.values()


def test_of_several_runs_the_one_that_loses_most_speaks() -> None:
    run = Run()
    for file, comm in (("one.log", 0.3), ("eight.log", 900.0)):
        builder = run.source(file)
        for row in range(8):
            parts = {"fwd": 60.0, "bwd": 120.0, "grad_sync": comm + row}
            for name, value in {**parts, "total": sum(parts.values())}.items():
                builder.add(kind="metric", name=name, value=value, step=row, line=row + 1, unit="ms")
    assert run.values()["step.communication_share"] == pytest.approx(0.83, abs=0.02)

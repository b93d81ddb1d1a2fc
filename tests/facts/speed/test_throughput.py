from __future__ import annotations

import numpy as np
import pytest

from rca.facts.speed.throughput import rhythm

from ..tables import Run, around, decay


def steady(count: int = 100, level: float = 0.5) -> np.ndarray:
    return around(level, count, noise=0.02, seed=4)


def test_a_steady_run() -> None:
    found = Run().curves({"step_time": steady()}).values()
    assert found["step.median_s"] == pytest.approx(0.5, rel=0.02)
    assert found["step.slow_share"] == 0
    assert found["step.slow_time_share"] == 0
    assert found["step.drift"] == pytest.approx(1, abs=0.03)
    assert found["throughput.drop"] == pytest.approx(0, abs=0.03)
    assert "step.period" not in found
    assert "step.data_share" not in found
    assert "checkpoint.save_s" not in found


def test_milliseconds_are_read_by_their_unit() -> None:
    run = Run()
    for step in range(10):
        run.source("a.csv").add(kind="metric", name="step_time", value=500.0, unit="ms", step=step, line=step)
    assert run.values()["step.median_s"] == 0.5


def test_every_fiftieth_step_is_slow() -> None:
    times = steady(400)
    times[50::50] = 6.0
    found = Run().curves({"step_time": times}).values()
    assert found["step.period"] == 50
    assert found["step.slow_steps"] == 7
    assert found["step.slow_share"] == pytest.approx(7 / 399)
    assert found["step.slow_time_share"] == pytest.approx(7 * 5.5 / (400 * 0.5 + 7 * 5.5), rel=0.05)


def test_slow_steps_without_a_rhythm_have_no_period() -> None:
    times = steady(400)
    times[[31, 60, 171, 190, 388]] = 6.0
    found = Run().curves({"step_time": times}).values()
    assert found["step.slow_steps"] == 5
    assert "step.period" not in found


def test_the_first_step_is_not_slow_but_told() -> None:
    times = steady(50)
    times[0] = 30.0
    found = Run().curves({"step_time": times}).values()
    assert found["step.first_over_median"] == pytest.approx(60, rel=0.05)
    assert found["step.slow_share"] == 0


@pytest.mark.parametrize("count", range(5))
def test_few_points_say_little(count: int) -> None:
    found = Run().curves({"step_time": [0.5] * count, "loss": [1.0] * 5}).values()
    assert ("step.median_s" in found) == (count >= 3)
    assert "step.slow_share" not in found


def test_step_times_from_the_times_of_lines() -> None:
    found = Run().curves({"loss": decay(60)}, every=10, seconds=5).facts()
    assert found["step.median_s"].value == pytest.approx(0.5)
    assert "successive lines" in found["step.median_s"].says
    assert found["throughput.drop"].value == pytest.approx(0)


def test_logged_times_go_before_the_times_of_lines() -> None:
    found = Run().curves({"loss": decay(60), "step_time": [2.0] * 60}, seconds=5).values()
    assert found["step.median_s"] == 2.0


def test_pauses_between_lines_are_slow_steps() -> None:
    run = Run()
    clock = 0.0
    for step in range(0, 400, 10):
        clock += 13 + (400 if step % 50 == 0 and step else 0)
        run.source("log").add(
            kind="metric", name="loss", value=1.0 + step, step=step, line=step + 1, time=int((1.7e9 + clock) * 1e6)
        )
    found = run.values()
    assert found["step.median_s"] == pytest.approx(1.3)
    assert found["step.period"] == 50
    assert found["step.slow_time_share"] > 0.7


def test_restarts_and_equal_times_are_no_step_times() -> None:
    run = Run().curves({"lr": [1.0] * 20}, seconds=1).curves({"lr": [1.0] * 20}, start=5, seconds=1)
    assert run.values()["step.median_s"] == pytest.approx(1)
    assert "step.median_s" not in Run().curves({"lr": [1.0] * 20}, seconds=0).values()


def test_drift_and_lost_throughput() -> None:
    slower = np.linspace(0.5, 1.5, 200)
    found = Run().curves({"step_time": slower}).values()
    assert found["step.drift"] == pytest.approx(1.4 / 0.6, rel=0.05)
    assert found["throughput.drop"] == pytest.approx(1 - 0.6 / 1.4, abs=0.03)
    logged = Run().curves({"throughput": 100 / slower, "step_time": [0.5] * 200}).values()
    assert logged["throughput.drop"] == pytest.approx(1 - 0.6 / 1.4, abs=0.03)
    assert logged["throughput.median"] == pytest.approx(100, rel=0.05)


def test_a_dip_in_throughput_is_no_drop() -> None:
    rate = around(1000, 100, noise=0.02)
    rate[40:45] = 20
    assert Run().curves({"throughput": rate}).values()["throughput.drop"] == pytest.approx(0, abs=0.03)


def test_share_of_waiting_for_data() -> None:
    step, data = steady(), steady() * 0.4
    data[0] = step[0] = 40.0
    assert Run().curves({"step_time": step, "data_time": data}).values()["step.data_share"] == pytest.approx(0.4)


def test_data_share_without_logged_step_times() -> None:
    found = Run().curves({"loss": decay(50), "data_time": [0.25] * 50}, seconds=1).values()
    assert found["step.data_share"] == pytest.approx(0.25)


def test_data_share_of_metrics_that_are_logged_at_different_steps() -> None:
    run = Run().curves({"step_time": [1.0] * 40}, source="a").curves({"data_time": [0.5] * 20}, every=2, source="a")
    assert run.values()["step.data_share"] == pytest.approx(0.5)


def test_data_time_of_another_unit_gives_no_share() -> None:
    assert "step.data_share" not in Run().curves({"step_time": [1.0] * 40, "data_time": [500.0] * 40}).values()


def test_share_of_writing_checkpoints() -> None:
    run = Run().curves({"loss": decay(11)}, seconds=100)
    for after in (100, 400, 900):
        run.source("train.log").add(
            kind="log",
            name="checkpoint.saved_in",
            phase="save",
            line=run.line("train.log"),
            time=(1_700_000_000 + after) * 1_000_000,
            attrs={"seconds": 60.0},
        )
    found = run.values()
    assert found["checkpoint.save_s"] == 60
    assert found["checkpoint.saves"] == 3
    assert found["checkpoint.save_share"] == pytest.approx(0.18)


def test_checkpoints_of_many_ranks_count_once() -> None:
    run = Run()
    for rank in range(4):
        run.curves(
            {"loss": decay(11), "save_checkpoint_seconds": [10.0] * 11}, source=f"r{rank}", rank=rank, seconds=50
        )
    assert run.values()["checkpoint.save_share"] == pytest.approx(110 / 500)


def test_rhythm_needs_normal_steps_between() -> None:
    steps = np.arange(20, dtype=float)
    assert rhythm(steps, np.ones(20, bool)) is None
    assert rhythm(steps, steps % 5 == 0) == 5
    assert rhythm(steps, steps < 3) is None
    assert rhythm(np.zeros(20), steps % 5 == 0) is None


def test_saves_are_timed_by_their_first_and_last_lines() -> None:
    run = Run()
    run.log("run.started", role="benign", after=0)
    for start in (100, 400, 700):
        for offset, name in ((0, "save_began"), (20, "saved"), (21, "save_began"), (61, "saved")):
            run.log(f"checkpoint.{name}", role="benign", after=start + offset)
    run.log("run.evaluation_started", role="benign", after=1000)
    found = run.values()
    assert found["checkpoint.saves"] == 3
    assert found["checkpoint.save_s"] == pytest.approx(60)
    assert found["checkpoint.save_share"] == pytest.approx(0.18)

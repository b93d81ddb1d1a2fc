from __future__ import annotations

from typing import Any

import pytest

from ..tables import Run, around


def run(columns: dict[int, dict[str, float]]) -> dict[str, Any]:
    made = Run()
    for rank, levels in columns.items():
        curves = {name: around(level, 40, noise=0.02, seed=rank) for name, level in levels.items()}
        made.curves(curves, source=f"timing_rank{rank}.csv", rank=rank)
    return made.values()


def test_one_rank_works_twice_as_long_and_the_others_wait() -> None:
    normal = {"fwd_s": 0.1, "bwd_compute_s": 0.2, "allreduce_wait_s": 0.3, "step_time": 0.62}
    slow = {"fwd_s": 0.2, "bwd_compute_s": 0.4, "allreduce_wait_s": 0.02, "step_time": 0.62}
    found = run({0: normal, 1: normal, 2: slow, 3: normal})
    assert found["ranks.slowest"] == 2
    assert found["ranks.slowest_ratio"] == pytest.approx(2, rel=0.05)
    assert found["ranks.slowest_by"] == "work"
    assert found["ranks.wait_outlier"] == 2
    assert found["ranks.wait_share"] == pytest.approx(0.3 / 0.62, rel=0.05)


def test_balanced_ranks_have_no_outlier() -> None:
    found = run({rank: {"fwd_s": 0.1, "wait_s": 0.2 + 0.02 * rank, "step_time": 0.4} for rank in range(4)})
    assert found["ranks.slowest_ratio"] == pytest.approx(1, abs=0.05)
    assert "ranks.wait_outlier" not in found


def test_waits_are_taken_off_the_step_where_work_is_not_logged() -> None:
    found = run({0: {"step_time": 1.0, "comm_wait": 0.5}, 1: {"step_time": 1.0, "comm_wait": 0.1}})
    assert found["ranks.slowest"] == 1
    assert found["ranks.slowest_ratio"] == pytest.approx(1.8, rel=0.05)
    assert found["ranks.slowest_by"] == "step_time without waits"
    assert "ranks.wait_outlier" not in found


def test_the_whole_step_is_the_last_choice() -> None:
    found = run({rank: {"step_time": 1.0 + (rank == 1)} for rank in range(3)})
    assert (found["ranks.slowest"], found["ranks.slowest_by"]) == (1, "step_time")
    assert found["ranks.slowest_ratio"] == pytest.approx(2, rel=0.05)


def test_waiting_for_data_is_work_of_the_rank() -> None:
    found = run({rank: {"forward": 0.1, "data_time": 0.5 if rank == 2 else 0.01} for rank in range(3)})
    assert found["ranks.slowest"] == 2
    assert found["ranks.slowest_ratio"] == pytest.approx(0.6 / 0.11, rel=0.05)


def test_the_rank_that_waits_least_in_traces() -> None:
    made = Run()
    for rank, exposed in enumerate([11_000, 3_500, 12_000, 11_500]):
        figures = {"trace.step_us": [42_000.0] * 4, "trace.exposed_collective_us": [exposed] * 4}
        made.curves(figures, source=f"rank{rank}.pt.trace.json", rank=rank)
    found = made.values()
    assert found["ranks.wait_outlier"] == 1
    assert found["ranks.wait_ratio"] == pytest.approx(3_500 / 11_500)
    assert found["ranks.wait_share"] == pytest.approx(11_500 / 42_000)


def test_one_rank_or_no_rank_is_no_comparison() -> None:
    assert not [name for name in run({0: {"step_time": 1.0, "wait_s": 0.1}}) if name.startswith("ranks.")]
    made = Run().curves({"step_time": around(1, 40)}, source="a").curves({"step_time": around(2, 40)}, source="b")
    assert not [name for name in made.values() if name.startswith("ranks.")]


def test_losses_and_counts_are_no_times() -> None:
    found = run({rank: {"forward_loss": float(rank + 1), "sync_count": 5.0 * rank + 1} for rank in range(4)})
    assert not [name for name in found if name.startswith("ranks.")]


def test_joint_forward_and_backward_timers_are_work() -> None:
    normal, slow = {"fwd_bwd": 0.30, "sync_wait": 0.2}, {"fwd_bwd": 0.45, "sync_wait": 0.05}
    found = run({0: normal, 1: slow, 2: normal, 3: normal})
    assert found["ranks.slowest_by"] == "work"
    assert found["ranks.slowest"] == 1
    assert found["ranks.slowest_ratio"] == pytest.approx(1.5, rel=0.05)

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rca.facts.speed.trace_ranks import CALL, waits

from ..tables import Run


def exchanged(run: Run, rank: int, starts: Sequence[float], durations: Sequence[float], *, name: str = "AllReduce",
              group: Sequence[int] = (), source: str | None = None) -> Run:  # fmt: skip
    """Collectives of one rank, two a step."""
    builder = run.source(source or f"rank{rank}.pt.trace.json", rank)
    for index, (start, duration) in enumerate(zip(starts, durations, strict=True)):
        attrs = {"ranks": list(group)} if group else None
        builder.add(
            kind="span",
            name=CALL,
            step=index // 2,
            value=start,
            unit="us",
            duration_us=duration,
            text=name,
            attrs=attrs,
        )
    return run


def job(*, late: int, ranks: int = 4, skew: float = 0.0) -> Run:
    """Six collectives that end together; one rank comes 200 us after the others, which are 10 us apart."""
    run = Run()
    for rank in range(ranks):
        arrival = 200.0 if rank == late else 10.0 * rank
        starts = [1000.0 * call + arrival + skew * rank for call in range(6)]
        exchanged(run, rank, starts, [300 - arrival] * 6)
    return run


def test_the_rank_that_comes_last_is_named() -> None:
    found = job(late=2).values()
    assert found["trace.straggler"] == 2
    assert found["trace.straggler_last_share"] == 1
    assert found["trace.straggler_lag_us"] == 200
    assert found["trace.matched_collectives"] == 6
    assert found["trace.clock_skew_us"] == 0
    assert found["trace.wait_of_collectives"] == pytest.approx(190 / 290, rel=0.05)
    assert found["ranks.wait_outlier"] == 2


def test_clocks_of_hosts_may_differ() -> None:
    found = job(late=1, skew=5_000_000.0).values()
    assert found["trace.straggler"] == 1
    assert found["trace.clock_skew_us"] == 15_000_000


def test_own_time_is_the_step_without_the_waits() -> None:
    run = job(late=0)
    for rank in range(4):
        for step in range(3):
            builder = run.source(f"rank{rank}.pt.trace.json", rank)
            builder.add(kind="metric", name="trace.step_us", step=step, value=1000.0, unit="us")
    found = run.values()
    assert found["ranks.slowest"] == 0
    assert found["ranks.slowest_by"] == "the profiled step without waits"
    assert found["ranks.slowest_ratio"] == pytest.approx(1000 / (1000 - 2 * 180), rel=0.02)


def test_even_ranks_have_no_straggler() -> None:
    run = Run()
    for rank in range(4):
        exchanged(run, rank, [1000.0 * call for call in range(6)], [100.0 + (call + rank) % 4 for call in range(6)])
    found = run.values()
    assert found["trace.matched_collectives"] == 6
    assert "trace.straggler" not in found


def test_two_ranks_name_none() -> None:
    assert "trace.straggler" not in job(late=1, ranks=2).values()


def test_groups_are_matched_by_themselves() -> None:
    run = Run()
    for rank in range(4):
        group = (0, 1) if rank < 2 else (2, 3)
        exchanged(run, rank, [1000.0 * call for call in range(6)], [100.0 * (1 + rank)] * 6, group=group)
    found = waits(run.table())
    assert found is not None
    assert found.wait.tolist() == [0, 600, 0, 600]


def test_calls_that_cannot_be_matched_are_left_out() -> None:
    run = job(late=2)
    exchanged(run, 0, [9000.0], [1.0], name="Broadcast")
    exchanged(run, 0, [9000.0], [1.0], name="AllGather")
    exchanged(run, 1, [9000.0, 9100.0], [1.0, 1.0], name="AllGather")
    assert run.values()["trace.matched_collectives"] == 6


def test_a_second_trace_of_a_rank_counts_once() -> None:
    run = job(late=2)
    exchanged(run, 1, [1000.0, 2000.0], [1.0, 1.0], source="again.pt.trace.json")
    found = run.values()
    assert (found["trace.matched_collectives"], found["trace.straggler"]) == (6, 2)


def test_without_calls_there_are_no_waits() -> None:
    assert waits(Run().curves({"loss": [1.0]}).table()) is None

"""Times of the fastest and of the slowest rank."""

from __future__ import annotations

from typing import Any

import pytest

from ..tables import Run


def timed(reports: int = 6, **timers: tuple[float, float]) -> dict[str, Any]:
    run = Run()
    for _ in range(reports):
        for name, (least, most) in timers.items():
            text = f"    {name} ....: ({least}, {most})"
            run.log("megatron.work_times", text, role=None, timer=name, least_ms=least, most_ms=most)
    return run.values()


def test_the_part_that_costs_most_by_it_counts() -> None:
    found = timed(forward=(1000.0, 2400.0), loader=(1.0, 9.0), backward=(2000.0, 2100.0))
    assert found["ranks.spread"] == pytest.approx(2.4)
    assert found["ranks.spread_ms"] == pytest.approx(1400)


def test_a_few_reports_are_too_few() -> None:
    assert "ranks.spread" not in timed(3, forward=(1000.0, 2400.0))

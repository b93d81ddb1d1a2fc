"""Curves of two runs at the same steps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rca.compare.curves import compare_curves

from .sides import Made

NOISE = np.random.default_rng(0).normal(0, 0.02, 400)
FALLING = [4 * math.exp(-n / 100) + 1 + NOISE[n] for n in range(200)]
ALIKE = [4 * math.exp(-n / 100) + 1 + NOISE[n + 200] for n in range(200)]


def compared(run: Made, healthy: Made):
    return {line.name: line for line in compare_curves(run.side(), healthy.side())}


def test_curves_that_differ_by_noise_do_not_part() -> None:
    line = compared(Made().curve("loss", FALLING), Made().curve("loss", ALIKE))["loss"]
    assert line.parts_at is None
    assert line.ratio == pytest.approx(1, abs=0.05)
    assert "do not part" in line.says


def test_the_step_at_which_a_curve_leaves_is_found() -> None:
    left = [value if n < 120 else value * (1 + 0.05 * (n - 120)) for n, value in enumerate(ALIKE)]
    line = compared(Made().curve("loss", left), Made().curve("loss", FALLING))["loss"]
    assert line.parts_at is not None
    assert 118 <= line.parts_at <= 130
    assert line.ratio is not None
    assert line.ratio > 3


def test_one_spike_does_not_part_two_curves() -> None:
    spiked = [40.0 if n == 90 else value for n, value in enumerate(ALIKE)]
    assert compared(Made().curve("loss", spiked), Made().curve("loss", FALLING))["loss"].parts_at is None


def test_a_curve_that_is_no_number_any_more_has_parted() -> None:
    broken = [value if n < 150 else math.nan for n, value in enumerate(ALIKE)]
    line = compared(Made().curve("loss", broken), Made().curve("loss", FALLING))["loss"]
    assert line.parts_at == 150
    assert line.ratio is None
    assert math.isnan(line.value)
    never = compared(Made().curve("loss", [math.nan] * 50), Made().curve("loss", FALLING))["loss"]
    assert never.parts_at == 0


def test_runs_that_log_at_other_steps_are_compared_between_the_points() -> None:
    healthy = Made().curve("loss", FALLING)
    run = Made().curve("loss", ALIKE[5::20], start=5, every=20)
    assert compared(run, healthy)["loss"].points == 10
    coarse = Made().curve("loss", FALLING[::25], every=25)
    assert compared(Made().curve("loss", ALIKE[3::10], start=3, every=10), coarse)["loss"].parts_at is None


def test_without_steps_the_order_counts() -> None:
    line = compared(Made().curve("loss", FALLING[:60], steps=False), Made().curve("loss", FALLING))["loss"]
    assert (line.points, line.parts_at, line.x_name) == (60, None, "record")


def test_a_resumed_run_counts_the_last_value_of_a_step() -> None:
    run = Made().curve("loss", [9.0] * 50).curve("loss", FALLING)
    assert compared(run, Made().curve("loss", FALLING))["loss"].ratio == pytest.approx(1)


def test_steady_measures_have_a_ratio() -> None:
    run, healthy = Made().curve("step_time", [0.9, *[0.6] * 40]), Made().curve("step_time", [0.8, *[0.2] * 40])
    assert compared(run, healthy)["step_time"].ratio == pytest.approx(3)


def test_two_units_are_not_compared() -> None:
    run, healthy = Made().curve("throughput", [9.0] * 40, unit="samples/s"), Made().curve("throughput", [7000.0] * 40)
    assert compared(run, healthy)["throughput"].points == 40
    other = Made().curve("throughput", [7000.0] * 40, unit="tokens/s")
    assert compared(run, other) == {}


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 4, [math.nan] * 30, [0.0] * 30, [-1.0] * 30, [math.inf] * 30])
def test_short_and_odd_curves_are_compared_or_left_out(values: list[float]) -> None:
    for run, healthy in ((values, FALLING), (FALLING, values), (values, values)):
        for line in compare_curves(Made().curve("loss", run).side(), Made().curve("loss", healthy).side()):
            assert line.points >= 5


def test_the_healthy_curve_is_kept_for_the_chart() -> None:
    line = compared(Made().curve("loss", FALLING), Made().curve("loss", ALIKE))["loss"]
    assert line.healthy[0] == (0.0, pytest.approx(ALIKE[0]))

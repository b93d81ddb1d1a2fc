from __future__ import annotations

import math

import numpy as np
import pytest

from rca.facts.robust import block_medians, ranks, running_median, runs, slope_t, spearman, spread, trailing_median
from rca.facts.training.curves import at_or_before, curve, curves

from ..tables import Run, decay


def test_most_complete_source_wins() -> None:
    run = Run().curves({"loss": decay(10)}, source="a.log").curves({"loss": decay(50)}, source="b.csv")
    found = curve(run.table(), "loss")
    assert found is not None
    assert found.source == "b.csv"
    assert len(curves(run.table(), "loss")) == 2
    assert curve(run.table(), "eval_loss") is None


def test_repeated_points_count_once() -> None:
    run = Run()
    for step, value in ((1, 3.0), (1, 3.0), (2, 2.5), (2, 2.4)):
        run.source("a.log").add(kind="metric", name="loss", value=value, step=step, line=run.line("a.log"))
    found = curve(run.table(), "loss")
    assert found is not None
    assert found.value.tolist() == [3.0, 2.5, 2.4]


def test_two_names_of_one_metric_on_a_line_count_once() -> None:
    run = Run()
    for step in range(3):
        line = run.line("a.csv")
        for value in (2.0 - step, 9.0):
            run.source("a.csv").add(kind="metric", name="loss", value=value, step=step, line=line)
    found = curve(run.table(), "loss")
    assert found is not None
    assert found.value.tolist() == [2.0, 1.0, 0.0]


def test_numbers_beyond_any_measurement() -> None:
    found = curve(Run().curves({"loss": [1.0, 1e200, -1e200, 1e-200]}).table(), "loss")
    assert found is not None
    assert found.value.tolist() == [1.0, math.inf, -math.inf, 0.0]


def test_places() -> None:
    with_steps = curve(Run().curves({"loss": decay(5)}, every=10).table(), "loss")
    without = curve(Run().curves({"loss": decay(5)}, steps=False).table(), "loss")
    assert with_steps is not None
    assert without is not None
    assert with_steps.place(-1) == "step 40"
    assert without.place(-1) == "point 5 of 5"
    assert without.position(-1) == 4
    assert at_or_before(with_steps, 25) == 2
    assert at_or_before(with_steps, -1) is None


def test_medians() -> None:
    values = np.array([1.0, 9.0, 1.0, 1.0, 5.0, 1.0])
    assert running_median(values, 3).tolist() == [9.0, 1.0, 1.0, 1.0, 1.0, 5.0]
    assert running_median(values, 1).tolist() == values.tolist()
    assert running_median(np.array([2.0]), 9).tolist() == [2.0]
    assert trailing_median(values, 3)[1:].tolist() == [1.0, 5.0, 1.0, 1.0, 1.0]
    assert math.isnan(trailing_median(values, 3)[0])
    assert block_medians(np.arange(100.0), 4).tolist() == [12.0, 37.0, 62.0, 87.0]
    assert spread(np.array([])) == 0.0
    assert spread(np.random.default_rng(0).normal(0, 2, 4000)) == pytest.approx(2, rel=0.1)


def test_rank_correlation() -> None:
    rising = np.arange(30.0)
    assert spearman(rising, rising**3) == pytest.approx(1.0)
    assert spearman(rising, -rising) == pytest.approx(-1.0)
    assert spearman(rising, np.ones(30)) == 0.0
    assert ranks(np.array([5.0, 1.0, 5.0])).tolist() == [2.5, 1.0, 2.5]


def test_slope() -> None:
    slope, significance = slope_t(np.linspace(0, 29, 30) + np.random.default_rng(0).normal(0, 0.1, 30))
    assert slope == pytest.approx(1.0, rel=0.01)
    assert significance > 50
    assert slope_t(np.ones(30)) == (0.0, 0.0)
    assert slope_t(np.array([1.0, 2.0])) == (0.0, 0.0)


def test_stretches() -> None:
    assert runs(np.array([True, False, True, True])) == [(0, 1), (2, 4)]
    assert runs(np.array([], dtype=bool)) == []

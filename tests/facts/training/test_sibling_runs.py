"""Runs of one job beside each other in one folder."""

from __future__ import annotations

import numpy as np
import pytest

from tests.facts.tables import Run, decay


def beside(first: np.ndarray, second: np.ndarray, *, settings: tuple[dict[str, object], dict[str, object]]) -> Run:
    run = Run()
    for name, values, own in (("a.log", first, settings[0]), ("b.log", second, settings[1])):
        run.config(name, **own).curves({"loss": list(values)}, source=name, every=10)
    return run


def with_spikes() -> np.ndarray:
    values = decay(200, seed=3)
    values[[60, 110, 160]] += 4.0
    return values


def with_nan() -> np.ndarray:
    values = decay(200, seed=3)
    values[50:] = np.nan
    return values


@pytest.mark.parametrize(
    ("bad", "outcome"),
    [(with_spikes(), "spikes"), (with_nan(), "non_finite"), (2 * decay(200, seed=3), "higher")],
)
def test_the_setting_that_separates_two_runs(bad: np.ndarray, outcome: str) -> None:
    settings = ({"adam_beta2": 0.999, "seed": 1, "lr": 1e-4}, {"adam_beta2": 0.95, "seed": 2, "lr": 1e-4})
    found = beside(bad, decay(200, seed=5), settings=settings).values()
    assert (found["runs.outcome"], found["runs.differ_in"], found["runs.differences"]) == (outcome, "adam_beta2", 1)
    assert found["runs.worse_over_better"] == pytest.approx(0.999 / 0.95)


def test_runs_with_one_seed_that_part_where_one_breaks() -> None:
    found = beside(with_nan(), decay(200, seed=3), settings=({"compile": True}, {"compile": False})).values()
    assert found["runs.outcome"] == "non_finite"


def test_runs_that_went_alike_are_not_compared() -> None:
    found = beside(decay(200, seed=3), decay(200, seed=5), settings=({"wd": 0.1}, {"wd": 0.2})).values()
    assert found["runs.count"] == 2
    assert "runs.outcome" not in found


def test_the_same_run_in_two_files_and_its_continuation_are_one_run() -> None:
    twice = beside(decay(200), decay(200), settings=({"wd": 0.1}, {"wd": 0.2}))
    assert "runs.count" not in twice.values()
    later = Run().config("a.log", wd=0.1).config("b.log", wd=0.2)
    later.curves({"loss": list(decay(100))}, source="a.log").curves(
        {"loss": list(decay(100, 2, 1))}, source="b.log", start=100
    )
    assert "runs.count" not in later.values()


def test_too_many_changes_explain_nothing() -> None:
    settings = ({f"key_{k}": 1 for k in range(6)}, {f"key_{k}": 2 for k in range(6)})
    assert "runs.outcome" not in beside(with_spikes(), decay(200, seed=5), settings=settings).values()

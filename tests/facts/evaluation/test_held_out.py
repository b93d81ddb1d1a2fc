from __future__ import annotations

import math

import numpy as np
import pytest

from ..tables import Run, decay


def run(evals: object, *, train: object = None, name: str = "eval_loss", **curves: object) -> Run:
    found = Run().curves({"loss": decay(200) if train is None else train, **curves})  # type: ignore[dict-item]
    return found.curves({name: evals}, every=20, start=19, source="eval.log")  # type: ignore[dict-item]


def test_healthy_validation() -> None:
    found = run(decay(10, 4.1, 2.1, 0.02)).values()
    assert found["eval.overfit"] is False
    assert found["eval.improving"] is True
    assert found["eval.constant"] is False
    assert found["eval.loss_nan"] is False
    assert found["eval.perfect"] is False
    assert found["eval.train_learned"] is False
    assert found["eval.points"] == 10


def test_constant_evaluation() -> None:
    assert run([2.7180] * 6).values()["eval.constant"] is True


def test_nan_evaluation() -> None:
    found = run([math.nan, math.nan]).values()
    assert found["eval.loss_nan"] is True
    assert found["eval.loss_nan_always"] is True
    assert run([2.0, math.nan, 1.9]).values()["eval.loss_nan_always"] is False


def test_perfect_results() -> None:
    assert run([1.0] * 5, name="eval_accuracy").values()["eval.perfect"] is True
    assert run([61.0, 70.0, 74.0], name="eval_accuracy").values()["eval.perfect"] is False
    assert run([0.5, 0.0001, 0.0001, 0.0001]).values()["eval.perfect"] is True


def test_chance_level() -> None:
    chance = run([0.098, 0.101, 0.1, 0.099], name="eval_accuracy").config(num_labels=10).values()
    assert chance["eval.at_chance"] is True
    learned = run([0.098, 0.4, 0.6, 0.7], name="eval_accuracy").config(num_labels=10).values()
    assert learned["eval.at_chance"] is False


def test_evaluating_twice_at_one_step() -> None:
    run_twice = Run()
    for value in (2.0, 2.4):
        run_twice.source("eval.log").add(
            kind="metric", name="eval_loss", value=value, step=100, line=run_twice.line("eval.log")
        )
    assert run_twice.values()["eval.repeat_differs"] == pytest.approx(0.4 / 2.2)
    assert "eval.repeat_differs" not in run([2.0, 1.9, 1.8]).values()


def test_accuracy_gap_in_percent_and_shares() -> None:
    found = run([60.0, 61.0, 62.0], name="eval_accuracy", accuracy=np.linspace(0.5, 0.99, 200)).values()
    assert found["eval.accuracy_last"] == pytest.approx(0.62)
    assert found["eval.accuracy_gap"] == pytest.approx(0.37, abs=0.02)


def test_accuracy_and_loss_of_an_even_guess_without_a_number_of_classes() -> None:
    noise = np.random.default_rng(0).normal(0, 0.004, 12)
    guess = Run().curves({"loss": list(2.303 + noise), "eval_accuracy": list(0.1 + noise / 10)})
    assert guess.values()["eval.at_chance"] is True
    learnt = Run().curves({"loss": list(0.9 + noise), "eval_accuracy": list(0.7 + noise / 10)})
    assert "eval.at_chance" not in learnt.values()

from __future__ import annotations

import math

import numpy as np
import pytest

from ..tables import Run, around, decay


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


def test_overfitting() -> None:
    evals = [4.0, 3.2, 2.8, 2.7, 2.75, 2.85, 3.0, 3.2, 3.4, 3.6]
    found = run(evals, train=np.linspace(4, 0.5, 200)).values()
    assert found["eval.overfit"] is True
    assert found["eval.rise"] > 0.3
    assert found["eval.best_step"] == 79
    assert found["eval.improving"] is False


def test_rise_while_training_rises_as_well_is_no_overfitting() -> None:
    evals = [4.0, 3.2, 2.8, 2.7, 2.9, 3.4, 4.0, 4.6, 5.1, 6.0]
    train = np.concatenate([np.linspace(4, 2.5, 80), np.linspace(2.5, 6, 120)])
    assert run(evals, train=train).values()["eval.overfit"] is False


@pytest.mark.parametrize("seed", range(6))
def test_noise_around_a_plateau_is_no_overfitting(seed: int) -> None:
    assert run(around(2.5, 10, 0.02, seed=seed), train=np.linspace(4, 1.5, 200)).values()["eval.overfit"] is False


def test_one_late_bad_evaluation_is_no_overfitting() -> None:
    evals = [4.0, 3.4, 3.0, 2.8, 2.7, 2.65, 2.6, 2.58, 2.57, 3.2]
    assert run(evals, train=np.linspace(4, 1, 200)).values()["eval.overfit"] is False


def test_constant_evaluation() -> None:
    assert run([2.7180] * 6).values()["eval.constant"] is True


def test_nan_evaluation() -> None:
    found = run([math.nan, math.nan]).values()
    assert found["eval.loss_nan"] is True
    assert found["eval.loss_nan_always"] is True
    assert run([2.0, math.nan, 1.9]).values()["eval.loss_nan_always"] is False


def test_validation_below_training() -> None:
    assert run([1.0] * 10).values()["eval.below_train_share"] == 1
    assert run([9.0] * 10).values()["eval.below_train_share"] == 0


def test_perfect_results() -> None:
    assert run([1.0] * 5, name="eval_accuracy").values()["eval.perfect"] is True
    assert run([61.0, 70.0, 74.0], name="eval_accuracy").values()["eval.perfect"] is False
    assert run([0.5, 0.0001, 0.0001, 0.0001]).values()["eval.perfect"] is True


def test_training_learns_but_validation_does_not() -> None:
    found = run(around(4.0, 10, 0.003), train=np.linspace(4, 1, 200)).values()
    assert found["eval.train_learned"] is True


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


def test_losses_told_by_part_are_added_up() -> None:
    epochs = np.arange(30)
    run = Run().curves(
        {
            "train/box_loss": list(1.6 * 0.9**epochs),
            "train/cls_loss": list(2 * 0.9**epochs),
            "val/box_loss": list(1.5 + 0.3 * 0.5**epochs + 0.03 * np.maximum(0, epochs - 6)),
            "val/cls_loss": list(1.6 + 0.3 * 0.5**epochs + 0.05 * np.maximum(0, epochs - 6)),
        }
    )
    assert run.values()["eval.overfit"] is True

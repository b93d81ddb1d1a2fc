from __future__ import annotations

import numpy as np
import pytest

from ..tables import Run, around, decay
from .test_held_out import run


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


def test_validation_below_training() -> None:
    assert run([1.0] * 10).values()["eval.below_train_share"] == 1
    assert run([9.0] * 10).values()["eval.below_train_share"] == 0


def test_training_learns_but_validation_does_not() -> None:
    found = run(around(4.0, 10, 0.003), train=np.linspace(4, 1, 200)).values()
    assert found["eval.train_learned"] is True


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


def test_overfitting_below_zero() -> None:
    evals = np.concatenate([np.linspace(0.3, -0.6, 10), np.linspace(-0.6, -0.2, 30)]) + around(0, 40, 0.01)
    found = Run().curves({"loss": np.linspace(0.35, -0.95, 40), "eval_loss": evals}).values()
    assert found["eval.overfit"] is True
    assert found["eval.rise"] == pytest.approx(0.44, abs=0.06)


def test_a_steady_gap_below_zero_is_no_overfitting() -> None:
    evals = decay(40, 0.3, -0.6, 0.01)
    found = Run().curves({"loss": np.linspace(0.35, -0.95, 40), "eval_loss": evals}).values()
    assert found["eval.overfit"] is False


@pytest.mark.parametrize(("accuracy", "known"), [(0.5, True), (0.8, False)])
def test_validation_that_is_far_away_from_the_first_evaluation_on(accuracy: float, known: bool) -> None:
    found = run(np.linspace(40, 90, 10), eval_accuracy=np.linspace(0.5, accuracy, 10)).values()
    assert found["eval.apart"] is known

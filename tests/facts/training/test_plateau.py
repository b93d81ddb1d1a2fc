from __future__ import annotations

import math

import numpy as np
import pytest

from ..tables import Run, around, decay


@pytest.mark.parametrize("seed", range(6))
def test_flat_loss_is_a_plateau(seed: int) -> None:
    found = Run().curves({"loss": around(2.31, noise=0.02, seed=seed)}).values()
    assert found["loss.plateau"] is True
    assert abs(found["loss.improvement"]) < 0.03


def test_falling_loss_is_none() -> None:
    found = Run().curves({"loss": decay()}).values()
    assert found["loss.plateau"] is False
    assert found["loss.improvement"] == pytest.approx(0.5, abs=0.05)
    assert "loss.ln_k" not in found


@pytest.mark.parametrize("seed", range(6))
def test_noisy_loss_with_a_falling_trend_is_none(seed: int) -> None:
    loss = np.linspace(2.0, 1.7, 300) + np.random.default_rng(seed).normal(0, 0.3, 300)
    assert Run().curves({"loss": loss}).values()["loss.plateau"] is False


def test_excerpt_of_a_long_run_says_nothing() -> None:
    assert "loss.plateau" not in Run().curves({"loss": around(2.3, 30)}, start=40_000, every=10).values()


def test_first_steps_of_a_run_say_nothing() -> None:
    assert "loss.plateau" not in Run().config(max_steps=100_000).curves({"loss": around(10.8, 12, 0.001)}).values()


def test_divergence_is_no_plateau() -> None:
    loss = np.concatenate([around(2.3, 100), np.geomspace(2.3, 40, 40)])
    assert Run().curves({"loss": loss}).values()["loss.plateau"] is False


def test_uniform_guess_of_a_known_number_of_classes() -> None:
    found = Run().config(num_labels=7).curves({"loss": around(math.log(7), noise=0.01)}).values()
    assert found["loss.ln_k"] == 7
    assert found["loss.ln_k_known"] is True


def test_uniform_guess_of_a_vocabulary() -> None:
    found = Run().config(vocab_size=50257).curves({"loss": around(math.log(50257) * 1.01, noise=0.005)}).values()
    assert found["loss.ln_k"] == 50257


def test_known_vocabulary_leaves_no_room_for_a_guess() -> None:
    assert "loss.ln_k" not in Run().config(vocab_size=50257).curves({"loss": around(2.303, noise=0.01)}).values()


def test_uniform_guess_by_accuracy() -> None:
    curves = {"loss": around(math.log(12), noise=0.005), "accuracy": around(1 / 12, noise=0.1)}
    found = Run().curves(curves).values()
    assert found["loss.ln_k"] == 12
    assert found["loss.ln_k_known"] is True


def test_late_plateau() -> None:
    loss = np.concatenate([np.linspace(4, 2, 60), around(2.0, 140, 0.005)])
    found = Run().curves({"loss": loss}).values()
    assert found["loss.plateau"] is False
    assert found["loss.plateau_late"] is True

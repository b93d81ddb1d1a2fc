from __future__ import annotations

import math

import numpy as np
import pytest

from ..tables import Run, around, decay, joined


def test_levels() -> None:
    facts = Run().curves({"loss": [3.0, 2.5, 2.0, 2.2]}, every=10).facts()
    assert facts["loss.points"].value == 4
    assert facts["loss.interval"].value == 10
    assert facts["loss.first"].value == 3.0
    assert facts["loss.last"].value == 2.2
    assert facts["loss.min"].value == 2.0
    assert facts["loss.max"].value == 3.0
    assert facts["loss.min"].says == "The smallest finite loss is 2 at step 20."
    assert facts["loss.huge"].value is False


def test_no_loss_no_facts() -> None:
    assert not [name for name in Run().curves({"grad_norm": [1.0] * 20}).values() if name.startswith("loss.")]


def test_huge_loss() -> None:
    assert Run().curves({"loss": [2.0, 3.0, 5e5]}).values()["loss.huge"] is True
    assert Run().curves({"loss": around(5e4)}).values()["loss.huge"] is False


@pytest.mark.parametrize(("first", "high"), [(10.9, False), (10.2, False), (35.0, True)])
def test_first_loss_of_a_language_model(first: float, high: bool) -> None:
    found = Run().config(vocab_size=50257).curves({"loss": decay(50, first, 5.0)}).values()
    assert found["loss.first_over_ln_vocab"] == pytest.approx(first / math.log(50257), rel=0.02)
    assert found["loss.first_too_high"] is high


def test_first_loss_of_a_log_that_starts_late_says_nothing() -> None:
    run = Run().config(vocab_size=50257).curves({"loss": decay(50)}, start=9000)
    assert "loss.first_over_ln_vocab" not in run.values()


def test_last_loss_against_an_even_guess() -> None:
    found = Run().config(vocab_size=256).curves({"loss": [67.0, 61.0, 58.0, float("nan")]}).values()
    assert found["loss.last_over_ln_vocab"] == pytest.approx(58 / math.log(256))
    late = Run().config(vocab_size=50257).curves({"loss": decay(50, 4.0, 2.0)}, start=9000).values()
    assert late["loss.last_over_ln_vocab"] < 0.3


def test_number_of_labels_of_a_language_model_is_a_default() -> None:
    found = Run().config(vocab_size=50257, num_labels=2).curves({"loss": decay(50, 10.8)}).values()
    assert found["loss.first_over_ln_vocab"] == pytest.approx(1.0, abs=0.02)
    classifier = Run().config(vocab_size=30522, num_labels=2, architectures="BertForSequenceClassification")
    assert classifier.curves({"loss": decay(50, 0.69, 0.3)}).values()["loss.first_over_ln_vocab"] < 1.2


def test_loss_that_is_too_good_for_text() -> None:
    leaking = Run().config(vocab_size=32000).curves({"loss": joined(np.geomspace(7, 0.02, 60), [0.02] * 60)})
    assert leaking.values()["loss.suspiciously_low"] is True
    healthy = Run().config(vocab_size=32000).curves({"loss": decay(120, 7.0, 2.0)})
    assert healthy.values()["loss.suspiciously_low"] is False


def test_memorised_after_many_epochs_is_not_too_good() -> None:
    loss = joined(decay(100, 4.0, 1.0), np.geomspace(1.0, 0.01, 100))
    run = Run().config(vocab_size=32000).curves({"loss": loss, "epoch": np.linspace(0, 20, 200)})
    assert run.values()["loss.suspiciously_low"] is False


def test_image_models_have_no_text_bound() -> None:
    run = Run().config(num_labels=10).curves({"loss": np.geomspace(2.3, 0.001, 100)})
    assert "loss.suspiciously_low" not in run.values()


def test_steps_are_not_needed() -> None:
    facts = Run().curves({"loss": [3.0, 2.5, 2.0]}, steps=False).facts()
    assert "loss.interval" not in facts
    assert facts["loss.last"].says == "The last finite loss is 2 at point 3 of 3."

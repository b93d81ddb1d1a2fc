from __future__ import annotations

import math

import numpy as np
import pytest

from ..tables import Run, around, decay, joined

WARM = joined(np.linspace(3e-5, 3e-4, 10), np.linspace(3e-4, 3e-5, 90))


def test_schedule_with_warm_up() -> None:
    found = Run().curves({"loss": decay(100), "learning_rate": WARM}, every=10).values()
    assert found["lr.peak"] == pytest.approx(3e-4)
    assert found["lr.order"] == -4
    assert found["lr.has_warmup"] is True
    assert found["lr.warmup_steps"] == 90
    assert found["lr.final_ratio"] == pytest.approx(0.1)
    assert found["lr.constant"] is False
    assert "lr.at_failure" not in found


def test_constant_schedule() -> None:
    found = Run().curves({"learning_rate": [1e-3] * 50}).values()
    assert found["lr.constant"] is True
    assert found["lr.has_warmup"] is False


def test_excerpt_does_not_tell_about_warm_up() -> None:
    assert "lr.has_warmup" not in Run().curves({"learning_rate": np.linspace(3e-4, 1e-4, 50)}, start=5000).values()


def test_configured_warm_up() -> None:
    assert Run().config(warmup_steps=100, learning_rate=1e-4).values()["lr.has_warmup"] is True
    assert Run().config(warmup_steps=0, learning_rate=1e-4).values()["lr.has_warmup"] is False
    assert Run().config(warmup_ratio=0.1, max_steps=2000).values()["lr.warmup_steps"] == 200


def broken(lr: list[float]) -> dict[str, object]:
    loss = joined(decay(60), np.geomspace(2, 300, 10), [math.nan] * 30)
    return Run().curves({"loss": loss, "learning_rate": lr}).values()


def test_failure_during_warm_up() -> None:
    found = broken(list(np.linspace(1e-6, 1e-3, 100)))
    assert found["lr.in_warmup_at_failure"] is True
    assert found["lr.at_peak_at_failure"] is False
    assert found["lr.at_failure"] == pytest.approx(6e-4, rel=0.1)


def test_failure_at_the_peak() -> None:
    found = broken(joined(np.linspace(1e-5, 1e-3, 20), [1e-3] * 80))
    assert found["lr.in_warmup_at_failure"] is False
    assert found["lr.at_peak_at_failure"] is True


def test_failure_during_warm_up_in_a_log_without_steps() -> None:
    loss = joined(decay(60), np.geomspace(2, 300, 10), [math.nan] * 30)
    curves = {"loss": loss, "learning_rate": np.linspace(1e-6, 1e-3, 100), "grad_norm": [1.0] * 100}
    found = Run().curves(curves, steps=False).values()
    assert found["lr.in_warmup_at_failure"] is True
    assert found["lr.at_failure"] == pytest.approx(6e-4, rel=0.1)


def test_failure_at_a_crash() -> None:
    found = Run().curves({"loss": decay(100), "learning_rate": WARM}).raised("ValueError", "bad").values()
    assert found["lr.at_failure"] == pytest.approx(3e-5)


def test_zero_learning_rates() -> None:
    found = Run().curves({"learning_rate": [0.0] * 20}).values()
    assert found["lr.always_zero"] is True
    assert found["lr.zero_share"] == 1
    assert "lr.peak" not in found
    assert Run().curves({"learning_rate": WARM}).values()["lr.always_zero"] is False


def test_decay_that_ends_too_early() -> None:
    early = joined(np.linspace(1e-3, 1e-6, 40), [0.0] * 100)
    assert Run().curves({"learning_rate": early}).values()["lr.decayed"] is True
    assert Run().curves({"learning_rate": WARM}).values()["lr.decayed"] is False


@pytest.mark.parametrize(
    ("settings", "high", "low"),
    [
        ({"optimizer": "adamw", "learning_rate": 3e-4}, False, False),
        ({"optimizer": "adamw_torch", "learning_rate": 0.05}, True, False),
        ({"optimizer": "adamw", "learning_rate": 1e-10}, False, True),
        ({"optimizer": "sgd", "learning_rate": 0.1}, False, False),
        ({"optimizer": "sgd", "learning_rate": 8.0}, True, False),
        ({"optimizer": "sgd", "learning_rate": 1e-7}, False, True),
        ({"optimizer": "lion", "learning_rate": 1e-2}, True, False),
        ({"optimizer": "muon", "learning_rate": 0.02}, False, False),
        ({"learning_rate": 0.02}, False, False),
        ({"learning_rate": 30.0}, True, False),
        ({"adam_beta2": 0.95, "learning_rate": 0.02}, True, False),
    ],
)
def test_usual_ranges(settings: dict[str, object], high: bool, low: bool) -> None:
    found = Run().config(**settings).values()
    assert (found["lr.high"], found["lr.low"]) == (high, low)


def test_range_depends_on_the_size() -> None:
    large = {"hidden_size": 4096, "num_layers": 32, "num_attention_heads": 32, "vocab_size": 32000}
    assert Run().config(optimizer="adamw", learning_rate=3e-3, **large).values()["lr.high"] is True
    assert Run().config(optimizer="adamw", learning_rate=3e-4, **large).values()["lr.high"] is False
    assert Run().config(optimizer="adamw", learning_rate=3e-3, lora_r=16, **large).values()["lr.high"] is False
    assert Run().config(optimizer="adamw", learning_rate=3e-3).values()["lr.high"] is False


def test_sentence_names_range_and_source() -> None:
    says = Run().config(optimizer="adamw", learning_rate=0.5).facts()["lr.high"].says
    assert "0.5" in says
    assert "Kingma" in says


def test_peak_of_a_log_that_ends_in_the_warm_up_is_the_configured_one() -> None:
    run = Run().config(learning_rate=1e-3, warmup_steps=1000)
    found = run.curves({"loss": around(3.0, 20), "learning_rate": np.linspace(1e-6, 2e-5, 20)}).values()
    assert found["lr.peak"] == 1e-3


def test_between_ordinary_and_alarming() -> None:
    found = Run().config(optimizer="adam", learning_rate=5e-8).values()
    assert (found["lr.low"], found["lr.ordinary"]) == (False, False)
    assert found["lr.under_usual"] == pytest.approx(0.05)


def test_fine_tuning_with_the_default_optimizer() -> None:
    """Trainers that start from a named model use Adam unless they are told otherwise."""
    assert Run().config(model_name_or_path="base", learning_rate=2e-3).values()["lr.high"] is True
    assert Run().config(model_name_or_path="base", learning_rate=2e-5).values()["lr.ordinary"] is True


def test_full_tuning_that_prints_the_line_of_adapters() -> None:
    def tuned(trained: str) -> bool:
        text = f"trainable params: {trained} || all params: 1,543,714,304 || trainable%: 100.0"
        run = Run().config(model_name_or_path="base", learning_rate=2e-3)
        return bool(run.log("peft.trainable_parameters", text, role="benign", severity="info").values()["lr.high"])

    assert tuned("1,543,714,304") is True
    assert tuned("9,232,384") is False


def test_policies_are_tuned_with_small_rates() -> None:
    run = Run().config(sft_model_path="out/sft", learning_rate=3e-4)
    assert run.curves({"reward": around(0.5, 20)}).values()["lr.high"] is True
    assert Run().config(learning_rate=3e-4).curves({"reward": around(0.5, 20)}).values()["lr.high"] is False


@pytest.mark.parametrize(
    "settings", [{"finetuning_type": "lora"}, {"train_type": "dora"}, {"use_peft": True}, {"lora_r": 8}]
)
def test_adapters_by_other_names_take_larger_rates(settings: dict[str, object]) -> None:
    assert Run().config(model_name_or_path="base", learning_rate=1e-3, **settings).values()["lr.high"] is False


def test_a_head_on_a_frozen_model_takes_larger_rates() -> None:
    text = "trainable params: 76,900 || all params: 85,876,000 || trainable%: 0.09"
    run = Run().config(model_name_or_path="base", learning_rate=3e-3)
    assert run.log("head.size", text, role="benign", severity="info").values()["lr.high"] is False

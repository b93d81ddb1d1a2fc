from __future__ import annotations

import math

import pytest

from rca.errors import ExperimentError
from rca.experiments.interface import RunProfile
from rca.experiments.twin.config import (
    FAMILIES,
    SHORT_WARMUP,
    TwinConfig,
    changed,
    differences,
    reference_of,
    resolved,
    twin_of,
)

LLAMA_7B = RunProfile(
    family="llama",
    hidden_size=4096,
    num_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    intermediate_size=11008,
    vocab_size=32000,
    optimizer="adamw_torch_fused",
    learning_rate=3e-4,
    warmup_steps=2000,
    failure_step=5000,
    batch_size=4,
    gradient_accumulation_steps=8,
    world_size=8,
    max_grad_norm=1.0,
    precision="bf16",
    seq_length=2048,
    lr_scheduler="cosine",
)


def test_the_learning_rate_is_mapped_by_width_and_the_init_grows() -> None:
    twin = twin_of(LLAMA_7B)
    assert twin.width_map == 64
    assert twin.config.lr == 3e-4
    assert twin.config.lr_factor == 64
    assert twin.config.init_std == pytest.approx(0.02 * math.sqrt(64))


def test_the_twin_takes_over_what_it_can_and_names_what_it_cannot() -> None:
    config, _, known, lost = twin_of(LLAMA_7B)
    assert known
    assert (config.family, config.kv_heads, config.vocab, config.seq) == ("llama", 1, 256, 32)
    assert config.ff == pytest.approx(64 * 11008 / 4096, abs=4)
    assert (config.clip, config.precision, config.warmup) == (1.0, "bf16", SHORT_WARMUP)
    assert config.batch * config.accumulation == 8
    text = " ".join(lost)
    for word in ("depth", "sequence length", "batch size", "cosine", "8 processes", "data"):
        assert word in text


def test_a_failure_inside_the_warm_up_gets_no_warm_up() -> None:
    assert twin_of(LLAMA_7B.model_copy(update={"failure_step": 100})).config.warmup == 0


def test_sgd_follows_the_measured_trend_and_says_so() -> None:
    profile = LLAMA_7B.model_copy(update={"optimizer": "sgd", "momentum": 0.9})
    twin = twin_of(profile)
    assert twin.config.lr == pytest.approx(3e-4 * 64**0.4)
    assert twin.config.lr_factor == 1
    assert any("width map" in line for line in twin.not_carried_over)


def test_an_unknown_class_is_replaced_and_reported() -> None:
    twin = twin_of(RunProfile(family="hyena", learning_rate=1e-3))
    assert twin.config.family == "llama"
    assert not twin.width_known
    assert any("hyena" in line for line in twin.not_carried_over)


def test_an_unusual_scale_of_the_weights_is_carried_over() -> None:
    config = twin_of(RunProfile(family="gpt2", hidden_size=64, initializer_range=0.6)).config
    assert config.init_factor == pytest.approx(30)
    assert reference_of(config).init_factor == 1


@pytest.mark.parametrize(
    "update",
    [
        {"hidden_size": 10**12},
        {"learning_rate": 1e300},
        {"vocab_size": 1},
        {"num_attention_heads": 1, "num_key_value_heads": 10**9},
        {"batch_size": 10**9, "world_size": 10**6},
        {"intermediate_size": 10**15},
    ],
)
def test_absurd_sizes_still_make_a_small_twin(update: dict[str, float]) -> None:
    config = twin_of(LLAMA_7B.model_copy(update=update)).config
    assert config.width * config.ff * config.vocab < 10**8
    assert config.batch * config.accumulation <= 8


def test_change_multiplies_or_sets_one_field() -> None:
    config = TwinConfig(lr=0.1, batch=2)
    assert changed(config, {"lr": "x0.1"}).lr == pytest.approx(0.01)
    assert changed(config, {"batch": "x4"}).batch == 8
    assert differences(config, changed(config, {"precision": "bf16"})) == ("precision",)


@pytest.mark.parametrize("change", [{"colour": "red"}, {"precision": "fp8"}])
def test_an_impossible_change_is_an_error_with_a_sentence(change: dict[str, str]) -> None:
    with pytest.raises(ExperimentError, match="twin"):
        changed(TwinConfig(), change)


def test_the_reference_is_the_same_model_without_faults() -> None:
    config = TwinConfig(family="gpt2", lr=3.0, precision="fp16", bad_batch="nonfinite", frozen="all", batch=1)
    good = reference_of(config)
    assert (good.family, good.precision, good.bad_batch, good.frozen, good.batch) == ("gpt2", "fp32", "none", "none", 8)
    assert good.lr < 0.01


def test_families_are_those_of_transformers_and_two_dense_ones() -> None:
    assert {"llama", "gpt2", "bert", "t5", "mistral", "qwen2", "gpt_neox", "opt", "cnn", "mlp"} <= FAMILIES


def test_settings_of_loss_labels_and_norms_are_carried_over() -> None:
    update = {
        "loss_scale_initial": 2.0**20,
        "loss_scale_window": 500,
        "loss_reduction": "sum",
        "ignored_share": 0.5,
        "activation": "gelu",
        "norm_eps": 1e-6,
        "attn_implementation": "flash_attention_2",
        "dropout": 0.1,
        "seed": 7,
        "ignore_index": 0,
    }
    twin = twin_of(LLAMA_7B.model_copy(update=update))
    config = twin.config
    assert (config.init_scale, config.growth_interval, config.loss_reduction) == (2.0**20, 500, "sum")
    assert (config.padding, config.masking, config.activation, config.norm_eps) == (0.5, "right", "gelu", 1e-6)
    assert (config.attention, config.dropout, config.seed) == ("sdpa", 0.1, 7)
    text = " ".join(twin.not_carried_over)
    assert "flash_attention_2" in text
    assert "ignores (0" in text


def test_a_family_without_another_attention_keeps_the_plain_one() -> None:
    update = {"family": "bloom", "attn_implementation": "sdpa"}
    assert twin_of(LLAMA_7B.model_copy(update=update)).config.attention == "eager"


def test_labels_that_are_all_masked_stay_so() -> None:
    assert twin_of(LLAMA_7B.model_copy(update={"ignored_share": 1.0})).config.masking == "all"


def test_a_deep_perceptron_keeps_its_depth_and_its_reference_gets_a_way_around() -> None:
    config = twin_of(RunProfile(family="mlp", num_layers=30, activation="sigmoid")).config
    assert (config.layers, config.activation) == (8, "sigmoid")
    good = reference_of(config)
    assert (good.layers, good.activation, good.residual) == (8, None, True)


def test_a_quantile_is_taken_from_the_controls_own_norms() -> None:
    norms = [*(float(step) for step in range(1, 100)), math.nan, math.inf]
    assert resolved({"clip": "q0.9"}, norms) == {"clip": 90.0}
    assert resolved({"lr": "x0.1"}, norms) == {"lr": "x0.1"}
    with pytest.raises(ExperimentError, match="finite gradient norms"):
        resolved({"clip": "q0.9"}, [math.nan] * 60)

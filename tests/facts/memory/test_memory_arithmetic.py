from __future__ import annotations

from typing import Any

import pytest

from rca.facts.model.model_size import from_config, in_words, parameter_count

from ..tables import Run

LLAMA_7B = {
    "hidden_size": 4096,
    "num_layers": 32,
    "num_attention_heads": 32,
    "intermediate_size": 11008,
    "vocab_size": 32000,
    "hidden_act": "silu",
}
GPT2 = {
    "hidden_size": 768,
    "num_layers": 12,
    "num_attention_heads": 12,
    "vocab_size": 50257,
    "max_position_embeddings": 1024,
    "hidden_act": "gelu_new",
}
TRAINING = {"optimizer": "adamw", "learning_rate": 1e-5}


def test_parameters_from_the_configuration() -> None:
    assert from_config(Run().config(**LLAMA_7B).table()) == pytest.approx(6.74e9, rel=0.01)
    assert from_config(Run().config(**GPT2).table()) == pytest.approx(1.24e8, rel=0.01)
    assert from_config(Run().config(hidden_size=768).table()) is None


def test_grouped_queries_need_fewer_parameters() -> None:
    grouped = {**LLAMA_7B, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256}
    assert from_config(Run().config(**grouped).table()) == pytest.approx(8.03e9, rel=0.01)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("trainable params: 4,194,304 || all params: 6,742,609,920 || trainable%: 0.0622", 6_742_609_920),
        ("number of parameters: 123.6M", 123.6e6),
        ("number of params: 41302368", 41302368),
        ("4.1 M     Total params", 4.1e6),
        ("model: 13.0B layer-wise calibration, 13.0B parameters", 13e9),
    ],
)
def test_printed_parameters(text: str, count: float) -> None:
    table = Run().log("model.size", text, role="benign", severity="info").table()
    found = parameter_count(table)
    assert found is not None
    assert found[0] == pytest.approx(count)


def test_ordinary_sentences_are_no_counts() -> None:
    for text in ("Detected unused parameters in module 3", "set parameter 12 of 14", "1 param group"):
        assert parameter_count(Run().log("x.y", text, role="benign", severity="info").table()) is None


def static(**settings: Any) -> float:
    return float(Run().config(**{**LLAMA_7B, **TRAINING, **settings}).values()["memory.static_gib"])


def test_full_training_in_fp32_needs_sixteen_bytes_a_parameter() -> None:
    assert static(torch_dtype="float32") == pytest.approx(6.74e9 * 16 / 2**30, rel=0.02)


def test_pure_half_precision_needs_half_of_it() -> None:
    assert static(torch_dtype="bfloat16") == pytest.approx(6.74e9 * 8 / 2**30, rel=0.02)


def test_sharding_divides() -> None:
    whole = static(zero_stage=0, bf16=True, world_size=8)
    third = static(zero_stage=3, bf16=True, world_size=8)
    assert whole == pytest.approx(6.74e9 * 16 / 2**30, rel=0.02)
    assert third == pytest.approx(whole / 8)
    assert third < static(zero_stage=1, bf16=True, world_size=8) < whole


def test_adapters_train_little() -> None:
    run = Run().config(**LLAMA_7B, **TRAINING, torch_dtype="bfloat16")
    run.log(
        "peft.trainable_parameters",
        "trainable params: 4,194,304 || all params: 6,742,609,920 || trainable%: 0.0622",
        role="benign",
        severity="info",
    )
    found = run.values()
    assert found["model.trainable_share"] == pytest.approx(0.000622, rel=0.01)
    assert found["memory.static_gib"] == pytest.approx(12.6, rel=0.02)


def test_inference_holds_weights_only() -> None:
    found = Run().config(**LLAMA_7B, torch_dtype="float16", max_model_len=4096).values()
    assert found["memory.static_gib"] == pytest.approx(12.55, rel=0.01)
    assert found["memory.gradients_gib"] == 0
    assert found["memory.kv_bytes_per_token"] == 2 * 32 * 4096 * 2
    assert found["memory.kv_cache_gib"] == pytest.approx(2.0)


def test_share_of_the_device() -> None:
    run = Run().config(**LLAMA_7B, **TRAINING, torch_dtype="float32")
    run.source("smi").add(kind="system", name="system.gpu", attrs={"memory_total_bytes": 80 * 2**30}, line=1)
    assert run.values()["memory.static_share"] > 1.2
    assert "memory.static_share" not in Run().config(**LLAMA_7B, **TRAINING).values()


def test_words() -> None:
    assert in_words(6.74e9) == "6.74 B"
    assert in_words(1.24e8) == "124 M"
    assert in_words(800) == "800"

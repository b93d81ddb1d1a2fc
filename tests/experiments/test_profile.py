from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest

from rca.events import EventBuilder, EventTable
from rca.experiments.profile import run_profile


@dataclass(frozen=True)
class Fact:
    value: Any


def events(config: dict[str, Any], metrics: dict[str, list[float]] | None = None) -> EventTable:
    builder = EventBuilder("config.json")
    for key, value in config.items():
        number = float(value) if isinstance(value, (int, float)) else None
        builder.add(kind="config", name=key, value=number, text=str(value), attrs={"key": key, "value": value})
    for name, values in (metrics or {}).items():
        for step, value in enumerate(values):
            builder.add(kind="metric", name=name, step=step, value=value)
    return EventTable.from_parts([builder.build()], text_sources=1)


def facts(**values: Any) -> dict[str, Fact]:
    return {name.replace("__", "."): Fact(value) for name, value in values.items()}


LLAMA = {
    "model_type": "llama",
    "hidden_size": 2048,
    "num_layers": 22,
    "num_attention_heads": 32,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
    "optimizer": "adamw_torch",
    "learning_rate": 0.0003,
    "warmup_ratio": 0.1,
    "max_steps": 1000,
    "fp16": True,
    "max_grad_norm": 1.0,
    "batch_size": 4,
}


def test_settings_come_from_the_configuration() -> None:
    profile = run_profile(events(LLAMA), {})
    assert (profile.family, profile.hidden_size, profile.num_layers) == ("llama", 2048, 22)
    assert (profile.precision, profile.warmup_steps, profile.tie_word_embeddings) == ("fp16", 100, False)
    assert profile.symptoms == ()


def test_an_empty_run_says_nothing() -> None:
    profile = run_profile(EventTable.from_parts([]), {})
    assert profile.model_dump(exclude_none=True) == {"symptoms": ()}


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("meta-llama/Llama-2-7b-hf", "llama"),
        ("LlamaForCausalLM", "llama"),
        ("distilbert-base-uncased", "distilbert"),
        ("roberta-large", "roberta"),
        ("GPTNeoXForCausalLM", "gpt_neox"),
        ("mixtral", "mistral"),
        ("resnet50", "cnn"),
        ("facebook/opt-1.3b", "opt"),
        ("google/flan-t5-xl", "t5"),
    ],
)
def test_the_family_is_recognised_in_many_spellings(name: str, family: str) -> None:
    assert run_profile(events({"model_type": name}), {}).family == family


def test_a_network_of_features_is_an_mlp_and_an_unknown_class_keeps_its_name() -> None:
    assert run_profile(events({"features": 32, "num_labels": 10}), {}).family == "mlp"
    assert run_profile(events({"model_type": "Mamba"}), {}).family == "mamba"


@pytest.mark.parametrize(
    ("config", "precision"),
    [
        ({"precision": "16-mixed"}, "fp16"),
        ({"precision": "bf16-mixed"}, "bf16"),
        ({"precision": "no"}, "fp32"),
        ({"bf16": True}, "bf16"),
        ({"fp16": False, "bf16": False}, "fp32"),
        ({"torch_dtype": "bfloat16"}, "bf16"),
        ({}, None),
    ],
)
def test_precision(config: dict[str, Any], precision: str | None) -> None:
    assert run_profile(events(config), {}).precision == precision


def test_half_weights_are_told_from_autocast() -> None:
    assert run_profile(events({"torch_dtype": "bfloat16"}), {}).weight_dtype == "bf16"
    assert run_profile(events({"torch_dtype": "bfloat16", "bf16": True}), {}).weight_dtype == "fp32"


def test_symptoms_come_from_facts() -> None:
    table = events({})
    assert run_profile(table, facts(loss__nan_at_start=True)).symptoms == ("nan_at_start",)
    assert run_profile(table, facts(loss__nan_step=40)).symptoms == ("nan_abrupt",)
    grown = facts(loss__nan_step=40, loss__growth_before_nan=5.0)
    assert run_profile(table, grown).symptoms == ("nan_after_growth",)
    assert run_profile(table, facts(loss__nan_step=4, loss__nan_isolated=True)).symptoms == ("nan_isolated",)
    assert run_profile(table, facts(loss_scale__longest_fall=14)).symptoms == ("skipping",)
    assert run_profile(table, facts(loss__plateau=True)).symptoms == ("stuck",)
    assert run_profile(table, facts(loss__first=5.5, loss__last=12.0, loss__points=50)).symptoms == ("diverged",)
    assert run_profile(table, facts(oom__tried_gib=2.0, oom__phase="forward")).symptoms == ("out_of_memory",)
    near_zero = facts(loss__oscillation=3.0, loss__improvement=0.99)
    assert run_profile(table, near_zero).symptoms == ()


def test_the_rate_is_that_of_the_failing_step() -> None:
    table = events({"learning_rate": 1e-3}, {"learning_rate": [0.0, 1e-4, 2e-4, 3e-4]})
    profile = run_profile(table, facts(loss__nan_step=2))
    assert (profile.learning_rate_at_failure, profile.failure_step) == (2e-4, 2)


def test_capacities_become_bytes() -> None:
    profile = run_profile(events({}), facts(oom__capacity_gib=79.2, oom__tried_gib=2.5, oom__allocated_gib=70.0))
    assert profile.device_capacity_bytes == int(79.2 * 2**30)
    assert profile.tried_bytes == int(2.5 * 2**30)


def test_a_first_loss_far_below_chance_means_trained_weights() -> None:
    assert run_profile(events({"vocab_size": 32000}), facts(loss__first=2.1)).pretrained is True
    assert run_profile(events({"vocab_size": 32000}), facts(loss__first=10.3)).pretrained is False


@pytest.mark.parametrize("value", ["NaN", "inf", -5, 10**400, "64; import os", None, [1], {"a": 1}, ""])
def test_hostile_values_count_as_not_recorded(value: Any) -> None:
    builder = EventBuilder("x")
    for key in ("hidden_size", "learning_rate", "batch_size", "dropout", "seed", "fp16", "model_type"):
        builder.add(kind="config", name=key, text=str(value)[:400], attrs={"key": key, "value": str(value)[:400]})
    profile = run_profile(EventTable.from_parts([builder.build()]), {})
    assert profile.hidden_size is None
    assert profile.learning_rate is None or math.isfinite(profile.learning_rate)
    assert profile.dropout is None

"""Stored tensors against the class in config.json, by the class's own loader, without weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rca.errors import ExperimentError
from rca.experiments.checks.model_class import UnknownModel, class_of
from tests.experiments.checks.conftest import Judge

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "tie_word_embeddings": True,
}


@pytest.fixture
def stored(tmp_path: Path, torch: Any) -> dict[str, Any]:
    """A tiny Llama as its own class saves it: no head, because it is tied."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    made, config = class_of(CONFIG)
    state = {name: value.clone() for name, value in made(config).state_dict().items() if name != "lm_head.weight"}
    save(tmp_path, state)
    return state


def save(folder: Path, state: dict[str, Any]) -> None:
    from safetensors.torch import save_file

    save_file({name: value.contiguous() for name, value in state.items()}, folder / "model.safetensors")


def test_a_model_as_its_class_saves_it_fits(judged: Judge, stored: dict[str, Any]) -> None:
    assert judged("weights_keys").verdict == "refuted"
    assert judged("weights_shapes").verdict == "refuted"


def test_a_wrapper_prefix_is_named(tmp_path: Path, judged: Judge, stored: dict[str, Any]) -> None:
    save(tmp_path, {f"module.{name}": value for name, value in stored.items()})
    found = judged("weights_keys")
    assert found.verdict == "confirmed"
    assert "without the prefix `module.` they fit" in found.reason


def test_layers_that_start_anew(tmp_path: Path, judged: Judge, stored: dict[str, Any]) -> None:
    save(tmp_path, {name: value for name, value in stored.items() if "layers.1.mlp" not in name})
    found = judged("weights_keys")
    assert found.verdict == "confirmed"
    assert "start from random values" in found.reason
    assert "3: model.layers.1.mlp" in dict(found.details)["parameters without a stored tensor"]


def test_a_new_head_is_usual(tmp_path: Path, judged: Judge, stored: dict[str, Any]) -> None:
    settings = {**CONFIG, "architectures": ["LlamaForSequenceClassification"]}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    found = judged("weights_keys")
    assert found.verdict == "inconclusive"
    assert "only a head starts anew" in found.reason


def test_tensors_that_are_not_used(tmp_path: Path, judged: Judge, stored: dict[str, Any]) -> None:
    save(tmp_path, {**stored, "extra.weight": stored["model.norm.weight"].clone()})
    assert judged("weights_keys").verdict == "inconclusive"


def test_other_shapes_are_named(tmp_path: Path, judged: Judge, stored: dict[str, Any]) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, "intermediate_size": 64}))
    found = judged("weights_shapes")
    assert found.verdict == "confirmed"
    assert "6 stored tensors do not have the shape of LlamaForCausalLM" in found.reason
    assert "stored 32x48, model 32x64" in found.reason


def test_a_missing_shard_is_another_question(tmp_path: Path, judged: Judge, stored: dict[str, Any]) -> None:
    mapped = {**dict.fromkeys(stored, "model.safetensors"), "other": "model-00002-of-00002.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": mapped}))
    with pytest.raises(ExperimentError, match=r"model-00002-of-00002\.safetensors is missing"):
        judged("weights_keys")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"architectures": ["MyForCausalLM"], "auto_map": {"AutoModelForCausalLM": "evil.MyForCausalLM"}}, "no class"),
        ({"architectures": ["logging"]}, "no class"),
        ({"architectures": ["__builtins__"]}, "no class"),
        ({"architectures": None}, "names no model class"),
        ({"model_type": "unheard_of"}, "no class"),
        ({"num_hidden_layers": 10**9}, "built up to"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantised"),
    ],
)
def test_what_cannot_be_built_says_why(change: dict[str, Any], words: str) -> None:
    with pytest.raises(UnknownModel, match=words):
        class_of({**CONFIG, **change})


def test_the_code_of_others_is_never_loaded(tmp_path: Path, judged: Judge, stored: dict[str, Any]) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit('executed')")
    settings = {**CONFIG, "auto_map": {"AutoModelForCausalLM": "evil.Model", "AutoConfig": "evil.Config"}}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    assert judged("weights_keys").verdict == "refuted"


def test_a_broken_shard_or_config_cannot_be_tested(tmp_path: Path, judged: Judge, stored: dict[str, Any]) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\0" * 20)
    with pytest.raises(ExperimentError, match=r"model\.safetensors has a header"):
        judged("weights_keys")
    save(tmp_path, stored)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ExperimentError, match="cannot be read"):
        judged("weights_keys")
    (tmp_path / "config.json").unlink()
    with pytest.raises(ExperimentError, match=r"both a config\.json and safetensors"):
        judged("weights_shapes")

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rca.ingest.interface import IngestContext, Source
from rca.ingest.read import read_source
from rca.ingest.registry import INGESTORS

MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "vocab_size": 512,
    "dtype": "bfloat16",
}


@pytest.mark.parametrize(
    ("name", "document", "role"),
    [
        ("config.json", MODEL, "model"),
        ("generation_config.json", {"eos_token_id": 2, "max_length": 20}, "generation"),
        ("tokenizer_config.json", {"tokenizer_class": "X", "model_max_length": 10}, "tokenizer"),
        ("adapter_config.json", {"peft_type": "LORA", "r": 8}, "adapter"),
        ("preprocessor_config.json", {"image_mean": [0.5], "image_std": [0.5]}, "preprocessor"),
        ("ds_config.json", {"zero_optimization": {"stage": 2}}, "deepspeed"),
        ("accelerate.json", {"compute_environment": "LOCAL_MACHINE", "num_processes": 8}, "accelerate"),
        ("args.json", {"learning_rate": 0.1, "output_dir": "x", "model_type": "bert"}, "training"),
    ],
)
def test_the_role_of_a_document_is_told(read: Any, name: str, document: dict[str, Any], role: str) -> None:
    settings = read(name, document).table.of_kind("config")
    assert {event.attr("file_role") for event in settings} == {role}


def test_limits_and_types_of_model_files_are_not_training_settings(read: Any) -> None:
    assert read("config.json", {**MODEL, "max_length": 20}).config()["torch_dtype"] == "bfloat16"
    assert "precision" not in read("a/config.json", MODEL).config()
    assert "seq_length" not in read("generation_config.json", {"max_length": 20, "eos_token_id": 2}).config()
    assert (
        "seq_length" not in read("tokenizer_config.json", {"tokenizer_class": "X", "model_max_length": 10**30}).config()
    )


def test_parts_with_sizes_of_their_own_keep_their_names(read: Any) -> None:
    document = {"model_type": "llava", "vision_config": {"hidden_size": 1024}, "text_config": {"hidden_size": 4096}}
    found = read("config.json", document).config()
    assert found["hidden_size"] == 4096
    assert found["vision_config.hidden_size"] == 1024


def test_labels_are_counted_not_listed(read: Any) -> None:
    found = read("config.json", {**MODEL, "id2label": {str(index): f"c{index}" for index in range(1000)}}).config()
    assert found["num_labels"] == 1000
    assert len(found) < 10


def test_deepspeed_keeps_auto_and_nested_values(read: Any) -> None:
    document = {
        "train_micro_batch_size_per_gpu": "auto",
        "fp16": {"enabled": True, "initial_scale_power": 16, "loss_scale_window": 1000},
        "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}},
        "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": [0.9, 0.95]}},
    }
    found = read("ds_config.json", document).config()
    assert found["batch_size"] == "auto"
    assert (found["fp16"], found["precision"], found["loss_scale_initial"]) == (True, "fp16", 16)
    assert (found["zero_stage"], found["zero_optimization.offload_optimizer.device"]) == (3, "cpu")
    assert (found["optimizer"], found["adam_beta2"], found["learning_rate"]) == ("adamw", 0.95, "auto")


@pytest.mark.parametrize(
    ("quantization", "expected"),
    [
        ({"load_in_4bit": True, "load_in_8bit": False}, "bitsandbytes-4bit"),
        ({"load_in_4bit": False, "load_in_8bit": False}, None),
        ({"quant_method": "gptq", "bits": 4}, "gptq"),
    ],
)
def test_quantisation_is_what_is_switched_on(read: Any, quantization: dict[str, Any], expected: str | None) -> None:
    found = read("config.json", {**MODEL, "quantization_config": quantization})
    event = found.table.config("quantization")
    assert (event.attr("value") if event else None) == expected


def test_a_tokenizer_is_described_by_its_ids(read: Any) -> None:
    document = {
        "version": "1.0",
        "added_tokens": [
            {"id": 5, "content": "<|x|>", "special": True},
            {"id": 0, "content": "<pad>", "special": True},
        ],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split"}, {"type": "ByteLevel"}]},
        "model": {"type": "BPE", "vocab": {"<pad>": 0, "a": 1, "b": 2, "ab": 3}, "merges": [["a", "b"]]},
    }
    event = read("tokenizer.json", document).one("tokenizer.vocabulary")
    assert (event.attr("size"), event.attr("max_id"), event.attr("added"), event.attr("added_max_id")) == (5, 5, 2, 5)
    assert event.attr("special_ids") == {"<|x|>": 5, "<pad>": 0}
    assert event.attr("pre_tokenizer") == "Sequence(Split, ByteLevel)"
    assert event.attr("merges_format") == "pairs"


@pytest.mark.parametrize(
    ("name", "document", "event", "top"),
    [
        ("vocab.json", {"a": 0, "b": 41}, "tokenizer.vocabulary", 41),
        ("added_tokens.json", {"<|u|>": 512, "<|v|>": 513}, "tokenizer.added_tokens", 513),
        ("tokenizer.json", {"model": {"type": "Unigram", "vocab": [["<unk>", 0.0], ["a", -1.0]]}, "added_tokens": []},
         "tokenizer.vocabulary", 1),
        ("tokenizer.json", {"model": {"type": "BPE", "vocab": "broken"}, "added_tokens": "broken"},
         "tokenizer.vocabulary", -1),
    ],
)  # fmt: skip
def test_vocabularies_of_many_shapes(read: Any, name: str, document: Any, event: str, top: int) -> None:
    assert read(name, document).one(event).attr("max_id") == top


def test_a_word_list_is_counted(read: Any) -> None:
    assert read("vocab.txt", "[PAD]\n[UNK]\nword\n").one("tokenizer.vocabulary").attr("max_id") == 2


def test_tokenizer_settings_name_the_special_tokens(read: Any) -> None:
    document = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": {"content": "</s>"},
        "pad_token": "<pad>",
        "added_tokens_decoder": {"7": {"content": "</s>"}, "9": {"content": "<pad>"}},
        "chat_template": "{{ x }}",
        "padding_side": "left",
    }
    found = read("tokenizer_config.json", document)
    event = found.one("tokenizer.config")
    assert event.attr("tokens") == {"eos_token": "</s>", "pad_token": "<pad>"}
    assert event.attr("ids") == {"</s>": 7, "<pad>": 9}
    assert (event.attr("chat_template"), event.attr("padding_side"), event.attr("max_id")) == (True, "left", 9)
    assert not any(name.startswith("added_tokens_decoder") for name in found.config())


def test_a_history_of_very_many_rows_keeps_both_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rca.ingest.trackers.metric_history.MAX_ROWS", 40)
    rows = [{"step": step, "loss": 2.0} for step in range(1, 201)]
    file = tmp_path / "trainer_state.json"
    file.write_text(json.dumps({"global_step": 200, "log_history": rows}))
    source = Source(path=file.name, file=file, size=file.stat().st_size)
    record, ingested = read_source(source, INGESTORS, IngestContext())
    assert ingested is not None
    losses = ingested.events.filter(ingested.events["name"].cast("string").to_numpy() == "loss")
    steps = losses["step"].to_pylist()
    assert steps[:10] == list(range(1, 11))
    assert steps[-10:] == list(range(191, 201))
    assert len(steps) <= 40
    assert "one in 9" in record.warnings[0]


def test_a_large_file_of_lines_called_json_is_read_line_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("sampled_lines", "json_files"):
        monkeypatch.setattr(f"rca.ingest.tables.{module}.MAX_SAMPLED", 8_192)
    monkeypatch.setattr("rca.ingest.tables.sampled_lines._END", 2_048)
    file = tmp_path / "metrics.json"
    file.write_text("".join(json.dumps({"iteration": step, "total_loss": 2.0}) + "\n" for step in range(1_000)))
    source = Source(path=file.name, file=file, size=file.stat().st_size)
    record, ingested = read_source(source, INGESTORS, IngestContext())
    assert ingested is not None
    assert "one in" in record.warnings[0]
    assert ingested.events["step"].to_pylist()[-1] == 999


def test_a_list_of_records_without_a_suffix_is_a_history(read: Any) -> None:
    rows = [{"main/loss": 3.0 - step / 10, "epoch": 1, "iteration": 100 * step} for step in range(1, 6)]
    found = read("results/log", json.dumps(rows, indent=4))
    assert [value for _step, value in found.metrics("loss")] == pytest.approx([2.9, 2.8, 2.7, 2.6, 2.5])


def test_a_null_tells_that_gradients_are_not_clipped(read: Any) -> None:
    settings = read("params.json", {"lr": 5e-5, "grad_clip": None, "gamma": None}).config()
    assert settings == {"learning_rate": 5e-5, "max_grad_norm": "None"}

from __future__ import annotations

from typing import Any

import pytest

from rca.ingest.settings.precision import precision_of


def test_a_training_config_gets_common_names_values_and_places(read: Any) -> None:
    found = read(
        "config.yaml", "base_model: ./x\nlearning_rate: 2e-5\nmicro_batch_size: 4\nbf16: true\nnone_here: null\n"
    )
    assert found.config() == {
        "base_model": "./x",
        "learning_rate": 2e-5,
        "batch_size": 4,
        "bf16": True,
        "precision": "bf16",
    }
    event = found.table.config("learning_rate")
    assert (event.line, event.value, event.text, event.attr("key")) == (2, 2e-5, "2e-5", "learning_rate")
    assert event.attr("file_role") == "training"


def test_hydra_and_component_classes_name_optimizer_and_schedule(read: Any) -> None:
    text = (
        "model: {depth: 12, dim: 768}\n"
        "optimizer: {_target_: torch.optim.AdamW, lr: 3.0e-4, betas: [0.9, 0.98]}\n"
        "lr_scheduler: {_component_: torchtune.training.CosineSchedule, warmup_steps: 10}\n"
        "trainer: {max_steps: 500, precision: 16-mixed}\n"
        "eval: {batch_size: 64}\n"
    )
    found = read("conf/config.yaml", text).config()
    assert found["optimizer"] == "adamw"
    assert (found["adam_beta1"], found["adam_beta2"]) == (0.9, 0.98)
    assert found["learning_rate"] == 3e-4
    assert (found["num_layers"], found["hidden_size"]) == (12, 768)
    assert found["max_steps"] == 500
    assert found["precision"] == "16-mixed"
    assert found["eval_batch_size"] == 64
    assert "batch_size" not in found


def test_hydra_overrides_are_settings(read: Any) -> None:
    found = read(
        ".hydra/overrides.yaml", "- optimizer.lr=1e-3\n- +trainer.max_steps=100\n- model/size=large\n"
    ).config()
    assert (found["learning_rate"], found["max_steps"]) == (1e-3, 100)


def test_mlflow_stores_points_and_parameters(read: Any) -> None:
    found = read(
        "mlruns/0/abc/metrics/train/loss", "1700000000000 2.5 0\n1700000001000 nan 1\n1700000002000 2.0 2\nx\n"
    )
    assert [step for step, _ in found.metrics("loss")] == [0, 1, 2]
    assert found.table.table["time"].null_count == 0
    assert read("mlruns/0/abc/params/learning_rate", "0.001").config() == {"learning_rate": 0.001}
    assert read("notes/metrics/readme.txt", "hello\n").record.kind == "log"


def test_wrapped_tracker_settings_are_unwrapped(read: Any) -> None:
    text = "_wandb: {value: {v: 1}}\nlr: {desc: null, value: 0.1}\nepochs: {desc: null, value: 3}\nx: {value: a}\n"
    found = read("wandb/config.yaml", text).config()
    assert (found["learning_rate"], found["epochs"], found["x"]) == (0.1, 3, "a")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("job.toml", '[training]\nbatch_size = 4\nseq_len = 4096\n[checkpoint]\nfolder = "ckpt"\n'),
        ("job.ini", "[training]\nbatch_size = 4\nseq_len = 4096\n"),
        ("job.cfg", "[training]\nbatch_size: 4\nseq_len: 4096\n"),
        ("job.yml", "training:\n  batch_size: 4\n  seq_len: 4096\n"),
        ("job.json", '{"training": {"batch_size": 4, "seq_len": 4096}}'),
    ],
)
def test_every_settings_format_gives_the_same_settings(read: Any, name: str, text: str) -> None:
    found = read(name, text).config()
    assert (found["batch_size"], found["seq_length"]) == (4, 4096)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.yaml", "a: [1", "not valid YAML"),
        ("a.yaml", "", "holds no setting"),
        ("a.yaml", "just a sentence\n", "holds no setting"),
        ("a.toml", "a = ", "not valid TOML"),
        ("a.json", '{"a": ', "not complete JSON"),
        ("a.json", "[1, 2, 3]", "without settings"),
    ],
)
def test_broken_and_empty_files_are_skipped_with_a_reason(read: Any, name: str, content: str, why: str) -> None:
    found = read(name, content)
    assert found.record.status == "skipped"
    assert why in found.record.why


def test_a_huge_settings_file_is_refused(read: Any) -> None:
    found = read("a.yaml", "a: " + "x" * (5 * 1024**2))
    assert "larger than" in found.record.why


def test_many_settings_are_bounded(read: Any) -> None:
    assert len(read("a.json", {f"key_{index}": index for index in range(5000)}).table.events) == 2000


def test_a_document_with_a_tag_runs_nothing(read: Any, tmp_path: Any) -> None:
    marker = tmp_path / "owned"
    found = read("a.yaml", f"lr: !!python/object/apply:os.system ['touch {marker}']\nepochs: !custom 3\n")
    assert found.config()["epochs"] == 3
    assert not marker.exists()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"fp16": True, "bf16": False}, "fp16"),
        ({"fp16": False, "bf16": False}, "fp32"),
        ({"fp16.enabled": True}, "fp16"),
        ({"bf16.enabled": True, "fp16.enabled": False}, "bf16"),
        ({"mixed_precision": "no"}, "fp32"),
        ({"mixed_precision": "bf16"}, "bf16"),
        ({"precision": "bf16-mixed"}, "bf16"),
        ({"precision": 32}, "fp32"),
        ({"precision": "64-true"}, "fp64"),
        ({"fp16.enabled": "auto"}, None),
        ({"fp16": False}, None),
        ({}, None),
    ],
)
def test_the_precision_is_one_word_whatever_the_key(settings: dict[str, Any], expected: str | None) -> None:
    decided = precision_of(settings, training=True)
    assert (decided.precision if decided else None) == expected
    assert precision_of(settings, training=False) is None

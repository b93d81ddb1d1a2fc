from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rca.cli import main

CONFIG = {
    "model_type": "gpt2",
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "vocab_size": 50257,
    "n_positions": 1024,
}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    return tmp_path


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["memory", *map(str, arguments)])
    return int(stop.value.code or 0)


@pytest.mark.slow
def test_the_cheapest_change_that_fits_is_named(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In one process of its own, as a user runs it: a small model on a small card."""
    assert run(model, "--device", "12GiB", "--batch", 16, "--seq", 1024, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"] == 124439808
    assert not found["rows"][0]["fits"]
    best = found["rows"][found["cheapest"]]
    assert best["fits"]
    assert best["remedies"] == ["smaller_batch"]  # the logits of 50,257 tokens fill the card, not the layers
    assert best["peak"] == sum(best["components"].values())
    assert best["peak"] < found["usable"] < found["rows"][0]["peak"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--device", "big"), "no size of a card"),
        (("--device", "8GiB", "--batch", "0"), "batch"),
    ],
)
def test_wrong_options_are_sentences(
    model: Path, arguments: tuple[str, ...], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(model, *arguments) == 2
    assert word in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "one JSON object"),
        ('{"model_type": "resnet"}', "resnet"),
        ('{"model_type": "llama", "hidden_size": "many"}', "hidden_size"),
        (
            '{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 9, '
            '"num_attention_heads": 0}',
            "0 heads",
        ),
    ],
)
def test_wrong_configurations_are_sentences(
    tmp_path: Path, text: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.json"
    file.write_text(text, encoding="utf-8")
    assert run(file, "--device", "8GiB") == 2
    assert word in capsys.readouterr().err


def test_a_missing_file_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "none.json", "--device", "8GiB") == 2
    assert "config.json" in capsys.readouterr().err


def test_what_is_no_plain_file_is_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "config.json")
    assert run(tmp_path, "--device", "80GiB") == 2
    assert "not a plain file" in capsys.readouterr().err

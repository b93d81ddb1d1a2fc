"""A real tokenizer trained here on a few lines, with a model folder around it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rca.errors import ExperimentError
from tests.experiments.checks.conftest import Judge, write_lines

TEXTS = [
    f"The {word} runs over the hill and counts to {number}." for number, word in enumerate(["fox", "dog", "cat", "hen"])
]
Folder = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Write a byte-level tokenizer with config files; arguments change them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<s>", "</s>", "<pad>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(TEXTS * 4, trainer)

    def write(*, rows: int | None = 300, generation: Any = None, **settings: Any) -> Any:
        made.save(str(tmp_path / "tokenizer.json"))
        base = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({**base, **settings}))
        (tmp_path / "generation_config.json").write_text(json.dumps(generation or {"eos_token_id": [1]}))
        (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": 1} | ({"vocab_size": rows} if rows else {})))
        return made

    return write


def test_a_tokenizer_that_fits_refutes_everything(folder: Folder, judged: Judge) -> None:
    folder()
    assert judged("tokenizer_ids").verdict == "refuted"
    assert judged("special_tokens").verdict == "refuted"
    found = judged("tokenizer_round_trip")
    assert found.verdict == "refuted"
    assert dict(found.details)["lines that come back"] == "13 of 13"


def test_ids_beyond_the_embedding_are_named(folder: Folder, judged: Judge) -> None:
    made = folder(rows=298)
    found = judged("tokenizer_ids")
    assert found.verdict == "confirmed"
    assert f"reach {made.get_vocab_size() - 1}, the embedding has 298 rows" in found.reason
    assert judged("tokenizer_round_trip").verdict == "confirmed"


def test_the_weights_know_the_rows_better_than_the_config(
    tmp_path: Path, folder: Folder, judged: Judge, torch: Any
) -> None:
    from safetensors.torch import save_file

    folder(rows=300)
    save_file({"model.embed_tokens.weight": torch.zeros((256, 4))}, tmp_path / "model.safetensors")
    found = judged("tokenizer_ids")
    assert found.verdict == "confirmed"
    assert "model.embed_tokens.weight" in dict(found.details)["rows of the embedding"]


def test_ids_of_samples_count_too(tmp_path: Path, folder: Folder, judged: Judge) -> None:
    folder()
    write_lines(tmp_path / "train.jsonl", [{"input_ids": [1, 2, 300]}])
    found = judged("tokenizer_ids")
    assert found.verdict == "confirmed"
    assert "samples hold id 300" in found.reason


def test_unknown_rows_cannot_be_tested(folder: Folder, judged: Judge) -> None:
    folder(rows=None)
    with pytest.raises(ExperimentError, match="how many rows"):
        judged("tokenizer_ids")


def test_of_two_folders_the_one_that_tells_something_counts(tmp_path: Path, folder: Folder, judged: Judge) -> None:
    folder(rows=280)
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "tokenizer.json").write_bytes((tmp_path / "tokenizer.json").read_bytes())
    assert judged("tokenizer_ids").verdict == "confirmed"
    assert judged("special_tokens").verdict == "refuted"


@pytest.mark.parametrize(
    ("change", "verdict", "words"),
    [
        ({"generation": {"eos_token_id": 7}}, "confirmed", "generation_config.json says 7"),
        ({"eos_token": "<|endoftext|>"}, "confirmed", "names a eos token that the tokenizer does not have"),
        ({"eos_token": {"content": "<|im_end|>"}}, "confirmed", "tokenizer_config.json says 3"),
        ({"pad_token": "</s>"}, "inconclusive", "Padding is the end of sequence"),
        ({"pad_token": "<pad>", "generation": {"eos_token_id": 1, "pad_token_id": 0}}, "inconclusive", "on padding"),
    ],
)
def test_special_tokens_are_held_against_each_other(
    folder: Folder, judged: Judge, change: dict[str, Any], verdict: str, words: str
) -> None:
    folder(**change)
    found = judged("special_tokens")
    assert found.verdict == verdict
    assert words in found.reason


def test_samples_made_with_another_tokenizer(tmp_path: Path, folder: Folder, judged: Judge) -> None:
    made = folder()
    rows: list[dict[str, Any]] = [{"text": text, "input_ids": [0, *made.encode(text).ids, 1, 2, 2]} for text in TEXTS]
    write_lines(tmp_path / "train.jsonl", rows)
    found = judged("tokenizer_round_trip")
    assert found.verdict == "refuted"
    assert dict(found.details)["samples whose ids this tokenizer gives"] == "4 of 4"
    write_lines(
        tmp_path / "train.jsonl", [{**row, "input_ids": [(one * 7) % 290 for one in row["input_ids"]]} for row in rows]
    )
    found = judged("tokenizer_round_trip")
    assert found.verdict == "confirmed"
    assert "made with another one" in found.reason


def test_markup_of_the_template_that_is_no_token(folder: Folder, judged: Judge) -> None:
    folder(chat_template="{{ m }}<|im_end|>")
    assert judged("tokenizer_round_trip").verdict == "refuted"
    folder(chat_template="<|start_header_id|>{{ m }}<|im_end|>")
    found = judged("tokenizer_round_trip")
    assert found.verdict == "confirmed"
    assert "<|start_header_id|>" in found.reason


def test_a_vocabulary_that_does_not_know_the_text(tmp_path: Path, judged: Judge) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "fox", "runs", "."]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    (tmp_path / "config.json").write_text('{"vocab_size": 9}')
    write_lines(tmp_path / "train.jsonl", [{"text": "the fox runs."}])
    assert judged("tokenizer_round_trip").verdict == "inconclusive"
    write_lines(tmp_path / "train.jsonl", [{"text": "Das Huhn läuft."}])
    found = judged("tokenizer_round_trip")
    assert found.verdict == "confirmed"
    assert "unknown to the tokenizer" in found.reason


@pytest.mark.parametrize("content", ["{", "[]", '{"model": {"type": "BPE"}}', '{"version": "9"}'])
def test_a_broken_tokenizer_ends_the_measurement_with_a_reason(tmp_path: Path, judged: Judge, content: str) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(Exception, match=r"\w+"):
        judged("tokenizer_ids")

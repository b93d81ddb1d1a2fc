"""Guilty samples are named with row and reason; clean samples refute; what cannot be told is not told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rca.errors import ExperimentError
from tests.experiments.checks.conftest import Judge, write_lines

NAN: dict[str, Any] = {"symptoms": ("nan_abrupt",), "precision": "fp32", "batch_size": 4}
LM: dict[str, Any] = {"family": "llama", "vocab_size": 100, "batch_size": 2}


def token_rows(count: int = 20) -> list[dict[str, Any]]:
    draw = np.random.default_rng(1)
    rows = [draw.integers(0, 100, 12).tolist() for _ in range(count)]
    return [{"input_ids": ids, "labels": list(ids), "attention_mask": [1] * 12} for ids in rows]


def features(tmp_path: Path, change: Any = None) -> None:
    values = np.random.default_rng(2).normal(size=(200, 8)).astype(np.float32)
    if change is not None:
        change(values)
    np.savez(tmp_path / "train.npz", x=values, y=np.arange(200) % 10)


def test_a_value_that_is_not_finite_is_named(tmp_path: Path, judged: Judge) -> None:
    def spoil(values: Any) -> None:
        values[17, 3] = np.inf

    features(tmp_path, spoil)
    found = judged("nonfinite_samples", **NAN)
    assert found.verdict == "confirmed"
    assert "Row 17 of train.npz: x has 1 of 8 values that are NaN or infinite" in found.reason


def test_a_table_with_many_empty_cells_proves_nothing(tmp_path: Path, judged: Judge) -> None:
    lines = [f"{row},{'' if row % 5 == 0 else row / 3}" for row in range(200)]
    (tmp_path / "train.csv").write_text("\n".join(["x,y", *lines]))
    found = judged("nonfinite_samples", **NAN)
    assert found.verdict == "inconclusive"
    assert "40 of 200 samples" in found.reason
    lines = [f"{row},{'' if row == 7 else row / 3}" for row in range(200)]
    (tmp_path / "train.csv").write_text("\n".join(["x,y", *lines]))
    assert judged("nonfinite_samples", **NAN).verdict == "confirmed"


def test_clean_samples_are_passed_through_a_twin_and_refute(tmp_path: Path, judged: Judge) -> None:
    features(tmp_path)
    found = judged("nonfinite_samples", **NAN)
    assert found.verdict == "refuted"
    assert "200 samples, 50 forwards" in dict(found.details)["passed through the twin: train.npz"]


def test_what_overflows_only_inside_is_found_by_halving(tmp_path: Path, judged: Judge) -> None:
    def spoil(values: Any) -> None:
        values *= 500
        values[120] = 6e4

    features(tmp_path, spoil)
    found = judged("nonfinite_samples", **{**NAN, "precision": "fp16"})
    assert found.verdict == "confirmed"
    assert "Row 120 of train.npz" in found.reason
    assert "forwards" in found.reason


def test_an_extreme_value_leaves_it_open(tmp_path: Path, judged: Judge) -> None:
    def spoil(values: Any) -> None:
        values[9] = 4e4

    features(tmp_path, spoil)
    found = judged("nonfinite_samples", **NAN)
    assert found.verdict == "inconclusive"
    assert "row 9 of train.npz stands out" in found.reason


def test_a_value_beyond_fp16_counts_in_an_fp16_run(tmp_path: Path, judged: Judge) -> None:
    def spoil(values: Any) -> None:
        values[9] = 1e5

    features(tmp_path, spoil)
    assert judged("nonfinite_samples", **{**NAN, "precision": "fp16"}).verdict == "confirmed"


@pytest.mark.parametrize("wrong", [100, -1, 50_000])
def test_a_token_id_without_a_row_is_named(tmp_path: Path, judged: Judge, wrong: int) -> None:
    rows = token_rows()
    rows[7]["input_ids"][4] = wrong
    write_lines(tmp_path / "train.jsonl", rows)
    found = judged("token_ids", **LM)
    assert found.verdict == "confirmed"
    assert f"Row 7 of train.jsonl: input_ids has id {wrong}" in found.reason


def test_ids_in_range_refute_and_an_unknown_vocabulary_cannot_be_tested(tmp_path: Path, judged: Judge) -> None:
    write_lines(tmp_path / "train.jsonl", token_rows())
    assert judged("token_ids", **LM).verdict == "refuted"
    with pytest.raises(ExperimentError, match="vocabulary"):
        judged("token_ids", family="llama")


def test_labels_are_held_against_the_head(tmp_path: Path, judged: Judge) -> None:
    features(tmp_path)
    assert judged("label_values", num_labels=10).verdict == "refuted"
    found = judged("label_values", num_labels=9)
    assert found.verdict == "confirmed"
    assert "Rows 9, 19, 29, 39, 49, 59 and others, 20 in all, of train.npz: y has label 9" in found.reason


def test_regression_targets_are_no_classes(tmp_path: Path, judged: Judge) -> None:
    np.savez(tmp_path / "train.npz", x=np.zeros((20, 3)), y=np.linspace(0, 50, 20))
    assert judged("label_values", num_labels=3).verdict == "confirmed"  # 0.0 and 50.0 are whole numbers
    np.savez(tmp_path / "train.npz", x=np.zeros((20, 3)), y=np.linspace(0.1, 50.3, 20))
    assert judged("label_values", num_labels=3).verdict == "refuted"


def test_samples_without_labels_matter_when_a_batch_can_hold_nothing_else(tmp_path: Path, judged: Judge) -> None:
    rows = token_rows(40)
    rows[5]["labels"] = [-100] * 12
    write_lines(tmp_path / "train.jsonl", rows)
    assert judged("unlabelled_samples", **{**LM, "batch_size": 1}).verdict == "confirmed"
    assert judged("unlabelled_samples", **{**LM, "batch_size": 16}).verdict == "inconclusive"


def test_unreadable_rows_and_files_are_named(tmp_path: Path, judged: Judge) -> None:
    write_lines(tmp_path / "train.jsonl", token_rows())
    assert judged("readable_samples").verdict == "refuted"
    with (tmp_path / "train.jsonl").open("ab") as file:
        file.write(b'{"input_ids": [1, 2\n')
    assert "Row 20 of train.jsonl" in judged("readable_samples").reason
    (tmp_path / "val.npz").write_bytes(b"PK\x03\x04 cut")
    found = judged("readable_samples")
    assert found.verdict == "confirmed"
    assert found.reason.startswith("val.npz cannot be read")


def test_lengths_within_a_sample_and_between_samples(tmp_path: Path, judged: Judge) -> None:
    rows = token_rows()
    write_lines(tmp_path / "train.jsonl", rows)
    assert judged("ragged_samples", **LM).verdict == "refuted"
    rows[3] = {"input_ids": [1] * 5, "labels": [1] * 5, "attention_mask": [1] * 5}
    write_lines(tmp_path / "train.jsonl", rows)
    found = judged("ragged_samples", **LM)
    assert found.verdict == "inconclusive"
    assert "5 to 12" in found.reason
    rows[3]["labels"] = [1] * 4
    write_lines(tmp_path / "train.jsonl", rows)
    found = judged("ragged_samples", **LM)
    assert found.verdict == "confirmed"
    assert "labels has 4 elements, the ids have 5" in found.reason


def test_outliers_in_length(tmp_path: Path, judged: Judge) -> None:
    rows: list[dict[str, Any]] = [{"input_ids": [1] * (30 + row % 7)} for row in range(60)]
    write_lines(tmp_path / "train.jsonl", rows)
    assert judged("long_samples").verdict == "refuted"
    rows[11]["input_ids"] = [1] * 2000
    write_lines(tmp_path / "train.jsonl", rows)
    found = judged("long_samples")
    assert found.verdict == "confirmed"
    assert "has 2000 tokens, the median has 33" in found.reason


def test_an_empty_split(tmp_path: Path, judged: Judge) -> None:
    write_lines(tmp_path / "train.jsonl", token_rows())
    assert judged("empty_split").verdict == "inconclusive"
    (tmp_path / "val.csv").write_text("")
    found = judged("empty_split")
    assert found.verdict == "confirmed"
    assert found.reason == "val.csv holds no sample."


def test_a_line_that_is_longer_than_is_read_says_nothing_about_the_file(
    tmp_path: Path, judged: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rca.experiments.checks.sample_formats.MAX_LINE", 1000)
    write_lines(tmp_path / "train.jsonl", [{"text": "a" * 3000}])
    assert judged("empty_split").verdict == "inconclusive"
    with pytest.raises(ExperimentError, match="nothing of the kind to look at"):
        judged("readable_samples")


def test_samples_may_be_named(tmp_path: Path, judged: Judge, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("elsewhere") / "mine.jsonl"
    rows = token_rows()
    rows[0]["input_ids"][0] = 400
    write_lines(place, rows)
    assert judged("token_ids", data=place, **LM).verdict == "confirmed"


def test_without_samples_nothing_is_tested(tmp_path: Path, judged: Judge) -> None:
    (tmp_path / "train.log").write_text("loss 1")
    with pytest.raises(ExperimentError, match="no file with samples"):
        judged("readable_samples")

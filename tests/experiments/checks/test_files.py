"""Which files count, and that no link is followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rca.experiments.checks import files
from rca.experiments.checks.files import is_sample_file, is_weight_file, left, listing, opened, side_of
from rca.experiments.interface import Material


@pytest.mark.parametrize(
    ("path", "named", "expected"),
    [
        ("data/train.jsonl", False, True),
        ("batch_000120.npz", False, True),
        ("val.parquet", False, True),
        ("train_log.jsonl", False, False),
        ("eval_results.json", False, False),
        ("eval/metrics.csv", False, False),
        ("trainer_state.json", False, False),
        ("requests.jsonl", False, False),
        ("requests.jsonl", True, True),
        ("train.pt", True, False),
    ],
)
def test_samples_are_known_by_their_name(path: str, named: bool, expected: bool) -> None:
    assert is_sample_file(path, named=named) is expected


@pytest.mark.parametrize(
    ("path", "side"),
    [
        ("data/train.jsonl", "train"),
        ("val/images", "held out"),
        ("split_test_0.npz", "held out"),
        ("training_set/valid.jsonl", None),
        ("contest.csv", None),
        ("train_vs_test.csv", None),
        ("latest.csv", None),
    ],
)
def test_the_side_of_a_split_is_read_off_a_path(path: str, side: str | None) -> None:
    assert side_of(path) == side


def test_an_optimizer_state_is_no_weight_file() -> None:
    assert is_weight_file("model-00001-of-00002.safetensors")
    assert not is_weight_file("checkpoint-10/optimizer.pt")
    assert not is_weight_file("training_args.bin")


def test_links_pipes_and_tool_folders_are_not_listed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "train.jsonl").write_text("{}")
    run = tmp_path / "run"
    run.mkdir()
    (run / "link.jsonl").symlink_to(outside / "train.jsonl")
    (run / "train").symlink_to(outside)
    os.mkfifo(run / "data.jsonl")
    (run / ".git").mkdir()
    (run / ".git" / "train.jsonl").write_text("{}")
    (run / "val.jsonl").write_text("{}")
    assert [file.path for file in listing(run).files] == ["val.jsonl"]
    with pytest.raises(OSError, match=r"symbolic|loop|link"):
        opened(run, "link.jsonl")
    with pytest.raises(OSError, match="plain"):
        opened(run, "data.jsonl")


def test_many_files_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_FILES", 10)
    for place in range(12):
        (tmp_path / f"{place:03d}.log").touch()
    found = listing(tmp_path)
    assert len(found.files) == 10
    assert found.cut


def test_ten_thousand_files_are_no_trouble(tmp_path: Path) -> None:
    for place in range(10_000):
        (tmp_path / f"{place}.x").touch()
    assert left(Material(folder=tmp_path)) == frozenset()


def test_what_is_left_is_told_by_names(tmp_path: Path) -> None:
    assert left(Material()) == frozenset()
    assert left(Material(data=tmp_path)) == {"samples", "splits"}
    for name in ("model.safetensors", "config.json", "tokenizer.json", "train.jsonl"):
        (tmp_path / name).touch()
    assert left(Material(folder=tmp_path)) == {"weights", "model", "tokenizer", "samples"}
    (tmp_path / os.fsdecode(b"val_\xff.jsonl")).touch()
    assert "splits" in left(Material(folder=tmp_path))

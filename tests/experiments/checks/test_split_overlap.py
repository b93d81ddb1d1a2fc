"""Shared samples are counted with an interval; copies, near copies, chance, and apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rca.errors import ExperimentError
from rca.experiments.checks.split_overlap import wilson
from tests.experiments.checks.conftest import Judge, write_lines


def sentences(seed: int, count: int) -> list[str]:
    draw = np.random.default_rng(seed)
    words = np.array([f"w{number}" for number in range(2000)])
    return [" ".join(draw.choice(words, 30)) for _ in range(count)]


def write(folder: Path, train: list[str], held: list[str]) -> None:
    write_lines(folder / "train.jsonl", [{"text": text, "id": place} for place, text in enumerate(train)])
    write_lines(folder / "val.jsonl", [{"text": text, "id": -place} for place, text in enumerate(held)])


def test_splits_apart_refute(tmp_path: Path, judged: Judge) -> None:
    write(tmp_path, sentences(0, 300), sentences(1, 100))
    found = judged("split_overlap")
    assert found.verdict == "refuted"
    assert found.reason == "None of 100 held-out samples is in the training."


def test_copies_confirm_with_places(tmp_path: Path, judged: Judge) -> None:
    train = sentences(0, 300)
    write(tmp_path, train, sentences(1, 75) + train[10:35])
    found = judged("split_overlap")
    assert found.verdict == "confirmed"
    assert "25 of 100 held-out samples (25.0%)" in found.reason
    rows = dict(found.details)
    assert rows["val.jsonl, row 75"] == "is train.jsonl, row 10"
    assert "17.5% to 34.3%" in rows["shared"]


def test_other_spacing_and_case_are_the_same_words(tmp_path: Path, judged: Judge) -> None:
    train = sentences(0, 300)
    write(tmp_path, train, sentences(1, 80) + ["  ".join(text.upper().split()) + " !" for text in train[:20]])
    found = judged("split_overlap")
    assert found.verdict == "confirmed"
    assert dict(found.details)["the same words"] == "20"


def test_near_copies_are_found_by_their_phrases(tmp_path: Path, judged: Judge) -> None:
    train = sentences(0, 300)
    write(tmp_path, train, sentences(1, 80) + [f"{text} and one more" for text in train[:20]])
    found = judged("split_overlap")
    assert found.verdict == "confirmed"
    rows = dict(found.details)
    assert rows["most of the same phrases"] == "20 of 100 compared with 300"


def test_a_training_that_repeats_itself_as_often_proves_nothing(tmp_path: Path, judged: Judge) -> None:
    few = sentences(0, 30)
    draw = np.random.default_rng(3)
    write(tmp_path, [few[place] for place in draw.integers(0, 30, 300)], [few[place] for place in range(20)] * 2)
    found = judged("split_overlap")
    assert found.verdict == "inconclusive"
    assert "repeats itself" in found.reason


def test_a_single_copy_among_many_is_too_few(tmp_path: Path, judged: Judge) -> None:
    train = sentences(0, 300)
    write(tmp_path, train, [*sentences(1, 299), train[0]])
    assert judged("split_overlap").verdict == "inconclusive"


def test_short_answers_are_no_copies(tmp_path: Path, judged: Judge) -> None:
    write(tmp_path, ["yes", "no"] * 50, ["yes", "no"] * 20)
    with pytest.raises(ExperimentError, match="too short"):
        judged("split_overlap")


def test_one_table_with_a_split_column(tmp_path: Path, judged: Judge) -> None:
    draw = np.random.default_rng(0)
    values = draw.normal(size=(120, 6)).round(6)
    values[100:110] = values[:10]
    records: list[dict[str, Any]] = [
        {**{f"f{place}": float(value) for place, value in enumerate(row)}, "split": "train" if number < 90 else "test",
         "label": number % 3 if number < 100 or number >= 110 else (number - 100) % 3}
        for number, row in enumerate(values)
    ]  # fmt: skip
    write_lines(tmp_path / "dataset.jsonl", records)
    found = judged("split_overlap")
    assert found.verdict == "confirmed"
    assert "10 of 30 held-out samples" in found.reason


@pytest.mark.parametrize(
    ("column", "verdict"), [("patient_id", "confirmed"), ("source", "inconclusive"), ("row", "refuted")]
)
def test_groups_on_both_sides(tmp_path: Path, judged: Judge, column: str, verdict: str) -> None:
    draw = np.random.default_rng(0)
    for side, first in (("train", 0), ("val", 5)):
        records = [
            {"path": f"{side}/{place}.png", "md5": f"{draw.integers(2**60):032x}", column: f"g{first + place % 10}"}
            for place in range(60)
        ]
        write_lines(tmp_path / f"{side}.jsonl", [{**record, "label": 1} for record in records])
    found = judged("split_overlap")
    assert found.verdict == verdict
    if column != "row":
        assert f"30 of 60 held-out samples have a {column}" in found.reason


def test_names_alone_never_refute(tmp_path: Path, judged: Judge) -> None:
    for side in ("train", "val"):
        write_lines(
            tmp_path / f"{side}.jsonl", [{"image_path": f"{side}/folder/{place:06d}.png"} for place in range(50)]
        )
    found = judged("split_overlap", data=tmp_path)
    assert found.verdict == "inconclusive"
    assert "only their names" in found.reason


def test_images_are_compared_by_their_bytes(tmp_path: Path, judged: Judge) -> None:
    for side, numbers in (("train", range(40)), ("val", range(35, 60))):
        (tmp_path / "images" / side).mkdir(parents=True)
        for number in numbers:
            (tmp_path / "images" / side / f"{side}_{number}.png").write_bytes(f"\x89PNG{number}".encode() * 20)
    found = judged("split_overlap", data=tmp_path / "images")
    assert found.verdict == "confirmed"
    assert "5 of 25 held-out samples" in found.reason
    assert "near duplicates only where samples are text" in found.scope


def test_without_both_splits_it_says_what_it_looks_for(tmp_path: Path, judged: Judge) -> None:
    write_lines(tmp_path / "train.jsonl", [{"text": text} for text in sentences(0, 10)])
    with pytest.raises(ExperimentError, match="in their names"):
        judged("split_overlap")


def test_the_interval_is_wilsons() -> None:
    assert wilson(0, 100) == pytest.approx((0.0, 0.0370), abs=1e-3)
    assert wilson(50, 100) == pytest.approx((0.404, 0.596), abs=1e-3)
    assert wilson(0, 0) == (0.0, 1.0)

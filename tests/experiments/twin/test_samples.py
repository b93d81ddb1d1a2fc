"""Samples that the user named: what is read, and what is said where nothing can be."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rca.errors import ExperimentError
from rca.experiments.twin import samples as room
from rca.experiments.twin.samples import Samples, load

RANDOM = np.random.default_rng(0)


def header(shape: str) -> bytes:
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def zipped(file: Path, member: bytes) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x.npy", member)
        archive.writestr("y.npy", member)


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_json_lines_of_numbers_and_of_text(tmp_path: Path) -> None:
    ids = [json.dumps({"input_ids": [7, 8, 9] * 20}) for _ in range(50)]
    text = [json.dumps({"text": "a café in the north " * 3}) for _ in range(50)]
    numbers, letters = (load(written(tmp_path, f"{k}.jsonl", "\n".join(v))) for k, v in (("a", ids), ("b", text)))
    assert (numbers.kind, numbers.count, numbers.distinct) == ("tokens", 50, 3)
    assert letters.count == 50
    assert max(letters.tokens[0]) < 256
    assert not numbers.cut


def test_classes_are_numbered_by_frequency(tmp_path: Path) -> None:
    lines = [json.dumps({"text": "some words " * 5, "label": "rare" if n % 5 == 0 else "usual"}) for n in range(100)]
    found = load(written(tmp_path, "a.jsonl", "\n".join(lines)))
    assert found.classes is not None
    assert found.classes[:6].tolist() == [1, 0, 0, 0, 0, 1]
    assert "in 2 classes" in found.words


def test_tables_with_and_without_a_head(tmp_path: Path) -> None:
    rows = [[n / 10, -n, n % 3] for n in range(60)]
    plain = load(written(tmp_path, "a.csv", "\n".join(",".join(map(str, row)) for row in rows)))
    head = "label,x,y\n" + "\n".join(f"{row[2]},{row[0]}," for row in rows)
    headed = load(written(tmp_path, "b.csv", head))
    for found, width in ((plain, 2), (headed, 2)):
        assert found.features is not None
        assert found.features.shape == (60, width)
        assert found.classes is not None
        assert set(found.classes.tolist()) == {0, 1, 2}
    assert headed.features is not None
    assert np.isnan(headed.features[:, 1]).all()


def test_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "tokens.npy", RANDOM.integers(0, 500, (80, 40)))
    np.save(tmp_path / "stream.npy", RANDOM.integers(0, 500, 5000).astype(np.uint16))
    np.save(tmp_path / "rows.npy", RANDOM.normal(size=(80, 5)).round())
    np.savez(tmp_path / "images.npz", images=RANDOM.integers(0, 255, (60, 28, 28), dtype=np.uint8), y=np.arange(60) % 4)
    tokens, stream, rows, images = (load(tmp_path / name) for name in
                                    ("tokens.npy", "stream.npy", "rows.npy", "images.npz"))  # fmt: skip
    assert (tokens.kind, tokens.count) == ("tokens", 80)
    assert (stream.kind, stream.count) == ("tokens", 1)
    assert rows.features is not None
    assert rows.features.shape == (80, 4)
    assert images.features is not None
    assert images.features.max() <= 1


@pytest.mark.parametrize(
    ("name", "make", "says"),
    [
        ("a.jsonl", lambda file: file.write_text("{"), "cannot be read"),
        ("a.jsonl", lambda file: file.write_text("[" * 100_000), "cannot be read"),
        ("a.jsonl", lambda file: file.write_text("[1]"), "not an object"),
        ("a.jsonl", lambda file: file.write_text('{"input_ids": [1e400, "x"]}'), "neither `input_ids`"),
        ("a.jsonl", lambda file: file.write_text('{"input_ids": [99999999999999999999]}'), "cannot be read"),
        ("a.jsonl", lambda file: file.write_text('{"text": "short"}'), "too few"),
        ("a.csv", lambda file: file.write_text(""), "two columns"),
        ("a.csv", lambda file: file.write_text("1,2\n1\n"), "has 1 cells"),
        ("a.csv", lambda file: file.write_text("1,2\nx,y\n"), "cannot be read"),
        ("a.csv", lambda file: file.write_text("1,2\n3,4\n"), "at least 40"),
        ("a.npy", lambda file: np.save(file, np.array([{"a": 1}]), allow_pickle=True), "cannot be read"),
        ("a.npy", lambda file: file.write_bytes(b"\x93NUMPY\x01\x00v\x00{'descr': '<f8'"), "cannot be read"),
        ("a.npz", lambda file: np.savez(file, other=np.zeros(3)), "no array input_ids"),
        ("a.npz", lambda file: file.write_bytes(b"PK"), "cannot be read"),
        ("a.npz", lambda file: zipped(file, b"no array"), "are not arrays"),
        ("a.npz", lambda file: zipped(file, header("(10000000000, 100)")), "Unable to allocate"),
        ("a.npy", lambda file: file.write_bytes(header("(" * 500)), "cannot be read"),
        ("a.npy", lambda file: file.mkdir(), "samples: Is a directory$"),
        ("a.pt", lambda file: file.write_bytes(b""), "samples are read from"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, name: str, make: Callable[[Path], None], says: str) -> None:
    make(tmp_path / name)
    with pytest.raises(ExperimentError, match=says):
        load(tmp_path / name)


def test_only_a_part_of_a_large_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_ROWS", 45)
    table = written(tmp_path, "a.csv", "".join(f"{n},{n % 2}\n" for n in range(100)))
    np.save(tmp_path / "a.npy", RANDOM.integers(0, 9, (100, 60)))
    found: list[Samples] = [load(table), load(tmp_path / "a.npy")]
    assert [(item.count, item.cut) for item in found] == [(45, True), (45, True)]
    assert "the first 45" in found[0].words

"""Reading samples: every format, bounded, nothing unpickled, what is broken is named."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from rca.experiments.checks import sample_formats, samples
from rca.experiments.checks.samples import read_samples
from tests.experiments.checks.conftest import write_lines


class Bomb:
    """Would leave a file behind if it were unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (Path.touch, (Path("unpickled"),))  # type: ignore[return-value]


def test_every_format_gives_the_same_rows(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"x": [0.5, 1.5, -2.0], "label": [0, 1, 2], "text": ["a", "b", "c"]})
    frame.to_csv(tmp_path / "train.csv", index=False)
    frame.to_csv(tmp_path / "train.tsv", index=False, sep="\t")
    frame.to_parquet(tmp_path / "train.parquet")
    frame.to_json(tmp_path / "train.jsonl", orient="records", lines=True)
    (tmp_path / "train.json").write_text(json.dumps({"data": frame.to_dict("records")}))
    (tmp_path / "train_columns.json").write_text(json.dumps(frame.to_dict("list")))
    np.savez(tmp_path / "train.npz", x=frame["x"].to_numpy(), label=frame["label"].to_numpy())
    found = read_samples(tmp_path, named=False)
    assert not found.damaged
    assert not found.unread
    assert len(found.tables) == 7
    for table in found.tables:
        assert table.rows == 3
        assert [float(value) for value in table.columns["x"]] == [0.5, 1.5, -2.0]
        assert [int(value) for value in table.columns["label"]] == [0, 1, 2]
        assert table.whole


def test_records_of_a_training_are_no_samples_unless_the_user_says_so(tmp_path: Path) -> None:
    write_lines(tmp_path / "train.jsonl", [{"step": 1, "loss": 2.0}])
    write_lines(tmp_path / "data.jsonl", [{"node": "a", "fan": 3}])
    assert not read_samples(tmp_path, named=False).tables
    assert len(read_samples(tmp_path, named=True).tables) == 2


def test_broken_lines_keep_their_numbers(tmp_path: Path) -> None:
    lines = b'{"text": "a"}\n{"text": \n\xff\xfe\n[1]\n' + b"[" * 5000 + b'\n{"text": "b"}\n'
    (tmp_path / "train.jsonl").write_bytes(lines)
    table = read_samples(tmp_path, named=False).tables[0]
    assert table.columns["text"] == ["a", "b"]
    assert [row for row, _why in table.broken] == [1, 2, 3, 4]
    assert table.number(1) == 5


def test_pickled_arrays_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "train.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(tmp_path / "batch.npz", "w") as archive:
        archive.writestr("x.npy", pickle.dumps(Bomb()))
    found = read_samples(tmp_path, named=False)
    assert not found.tables
    assert [name for name, _why in found.unread] == ["train.npy"]
    assert "pickled" in found.unread[0][1]
    assert [name for name, _why in found.damaged] == ["batch.npz"]
    assert not (tmp_path / "unpickled").exists()


def test_announced_sizes_are_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_formats, "MAX_BYTES", 2**20)
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 10**6)})
    (tmp_path / "train.npy").write_bytes(head.getvalue())
    with zipfile.ZipFile(tmp_path / "batch.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", b"\0" * (sample_formats.MAX_BYTES + 1))
    found = read_samples(tmp_path, named=False)
    assert not found.tables
    assert {name for name, _why in found.unread} == {"train.npy", "batch.npz"}


def test_truncated_files_are_damaged(tmp_path: Path) -> None:
    import pandas as pd

    pd.DataFrame({"text": ["a"] * 50}).to_parquet(tmp_path / "train.parquet")
    np.savez(tmp_path / "batch.npz", x=np.zeros((50, 4)))
    np.save(tmp_path / "data.npy", np.zeros((50, 4)))
    for name in ("train.parquet", "batch.npz", "data.npy"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[: len(content) - 40])
    (tmp_path / "val.json").write_text('{"data": [1 2]}')
    found = read_samples(tmp_path, named=False)
    assert not found.tables
    assert {name for name, _why in found.damaged} == {"train.parquet", "batch.npz", "data.npy", "val.json"}


def test_text_that_ends_early_was_cut_when_written_or_copied(tmp_path: Path) -> None:
    (tmp_path / "val.json").write_text('{"data": [{"text": "a"}, {"te')
    (tmp_path / "train.jsonl").write_text('{"text": "a"}\n{"text": "b')
    found = read_samples(tmp_path, named=False)
    assert found.unread == [("val.json", "it ends before its JSON does")]
    assert not found.damaged
    assert not found.tables[0].broken
    assert not found.tables[0].whole


def test_json_lines_under_another_name_and_parts_of_files(tmp_path: Path) -> None:
    write_lines(tmp_path / "train_head.json", [{"text": "a"}, {"text": "b"}])
    table = read_samples(tmp_path, named=False).tables[0]
    assert table.rows == 2
    assert not table.whole
    assert read_samples(tmp_path, named=True).tables[0].whole


def test_too_many_rows_are_cut_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_formats, "MAX_ROWS", 10)
    write_lines(tmp_path / "train.jsonl", [{"text": str(row)} for row in range(30)])
    table = read_samples(tmp_path, named=False).tables[0]
    assert table.rows == 10
    assert not table.whole


def test_one_named_file_is_read(tmp_path: Path) -> None:
    write_lines(tmp_path / "anything.jsonl", [{"foo": 1.0}])
    assert read_samples(tmp_path / "anything.jsonl", named=True).tables[0].rows == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("train.npy", b"\x93NUMPY\x01\x00\x76\x00" + b"{'descr': (((((" + b" " * 103),
        ("train.npz", b"PK\x01\x02\x14\x00\xff\x00" + bytes(38) + b"PK\x05\x06\0\0\0\0\x01\0\x01\0\x2e" + bytes(9)),
        ("train.parquet", b"PAR1" + b"\xff" * 40 + b"PAR1"),
        ("train.csv", b'a,b\n1,2\n"3,4,5,6\n'),
        ("train.json", b"\xff\xfe\x00"),
    ],
)  # fmt: skip
def test_headers_that_break_their_readers_are_damage(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    found = read_samples(tmp_path, named=True)
    assert [file for file, _why in found.damaged] == [name]
    assert not found.tables


def test_a_system_error_does_not_name_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(root: Path, path: str) -> None:
        raise OSError(5, "Input/output error", str(root / path))

    write_lines(tmp_path / "train.jsonl", [{"text": "a"}])
    monkeypatch.setattr(samples, "opened", failing)
    assert read_samples(tmp_path, named=False).damaged == [("train.jsonl", "OSError: Input/output error")]

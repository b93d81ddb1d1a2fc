"""A source ends as read or as skipped with a sentence; nothing is loaded or run."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.read import read_source
from rca.ingest.registry import INGESTORS


class Picky:
    name = "picky"

    def __init__(self, *, takes: bool, fails: bool = False) -> None:
        self._takes = takes
        self._fails = fails

    def accepts(self, source: Source, head: bytes) -> bool:
        return self._takes

    def read(self, source: Source, context: IngestContext) -> Ingested:
        if self._fails:
            raise UnreadableSource("The header is broken.")
        out = EventBuilder(source.path)
        out.add(kind="log", name="a.b", line=1)
        return Ingested(out.build(), lines=3, bytes=9, first_time=0, last_time=1_500_000, warnings=("Cut.",))


def source(tmp_path: Path, data: bytes, name: str) -> Source:
    (tmp_path / name).write_bytes(data)
    return Source(name, tmp_path / name, len(data))


def test_the_first_that_accepts_reads(tmp_path: Path) -> None:
    found, ingested = read_source(
        source(tmp_path, b"x", "a.log"), (Picky(takes=False), Picky(takes=True)), IngestContext()
    )
    assert ingested is not None
    assert (found.kind, found.status, found.lines, found.bytes, found.events) == ("picky", "read", 3, 9, 1)
    assert (found.first_time, found.last_time) == ("1970-01-01T00:00:00+00:00", "1970-01-01T00:00:01+00:00")
    assert found.warnings == ("Cut.",)


def test_an_unreadable_source_is_skipped_with_its_reason(tmp_path: Path) -> None:
    found, ingested = read_source(source(tmp_path, b"x", "a.bin"), (Picky(takes=True, fails=True),), IngestContext())
    assert ingested is None
    assert (found.status, found.kind, found.why) == ("skipped", "picky", "The header is broken.")


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("core.1234", b"\x7fELF" + bytes(range(256)) * 8, "core dump"),
        ("plot.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "image"),
        ("wandb.db", b"SQLite format 3\0" + bytes(200), "SQLite"),
        ("noise.log", None, "binary"),
        ("noise", None, "binary"),
    ],
)
def test_binary_files_are_skipped_and_named(tmp_path: Path, name: str, data: bytes | None, why: str) -> None:
    found, ingested = read_source(
        source(tmp_path, os.urandom(50_000) if data is None else data, name), INGESTORS, IngestContext()
    )
    assert ingested is None
    assert found.status == "skipped"
    assert why in found.why


class Evil:
    def __reduce__(self):
        return os.system, ("touch pwned",)


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("name", ["state.pkl", "state.log", "state"])
def test_a_pickle_is_never_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: int, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    found, _ = read_source(
        source(tmp_path, pickle.dumps([Evil()] * 50, protocol=protocol), name), INGESTORS, IngestContext()
    )
    assert not (tmp_path / "pwned").exists()
    if protocol >= 2:
        assert found.kind != "log"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_skipped(tmp_path: Path) -> None:
    closed = source(tmp_path, b"step 1 loss 2\n", "train.log")
    closed.file.chmod(0)
    found, _ = read_source(closed, INGESTORS, IngestContext())
    assert found.status == "skipped"
    assert "Permission denied" in found.why


def test_a_file_that_vanished_is_skipped(tmp_path: Path) -> None:
    found, ingested = read_source(Source("gone.log", tmp_path / "gone.log", 9), INGESTORS, IngestContext())
    assert ingested is None
    assert "cannot be opened" in found.why


def test_source_code_is_no_log(tmp_path: Path) -> None:
    text = b"def train():\n    raise RuntimeError('CUDA out of memory')\n" * 3
    found, _ = read_source(source(tmp_path, text, "model.cpp"), INGESTORS, IngestContext())
    assert "source code" in found.why


def test_a_broken_structured_file_that_is_called_a_log_is_read_as_one(tmp_path: Path) -> None:
    readers = (Picky(takes=True, fails=True), *INGESTORS)
    found, ingested = read_source(source(tmp_path, b"step 1 loss 2.5\n" * 3, "train.log"), readers, IngestContext())
    assert ingested is not None
    assert found.kind == "log"
    assert "The header is broken." in found.warnings[0]

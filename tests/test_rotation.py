"""Parts of one log: which files they are, and in which order."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from rca.events import EventTable
from rca.ingest.interface import IngestContext
from rca.ingest.places.discover import discover
from rca.ingest.read import read_source
from rca.ingest.registry import INGESTORS
from rca.rotation import parts_of


@pytest.mark.parametrize(
    ("oldest_first", "certain"),
    [
        (["logs/train.log.10.gz", "logs/train.log.2.gz", "logs/train.log.1", "logs/train.log"], True),
        (["train.log-20261101", "train.log-20261102.gz", "train.log"], True),
        (["app.log.2026-11-01", "app.log.2026-11-02", "app.log"], True),
        (["run.2026-11-01_10-00-00_000001.log", "run.2026-11-02_10-00-00_000001.log", "run.log"], True),
        (["0.log.20261130-204300", "0.log.20261130-214300", "0.log"], True),
        (["part.log.0000", "part.log.0001", "part.log.0010"], False),
        (["train.log.2", "train.log.1"], False),
    ],
)
def test_order_and_certainty(oldest_first: list[str], certain: bool) -> None:
    parts = parts_of(sorted(oldest_first))
    assert sorted(parts, key=lambda path: parts[path].order) == oldest_first
    assert {part.certain for part in parts.values()} == {certain}


@pytest.mark.parametrize(
    "paths",
    [
        ["train.log", "eval.log"],
        ["train.log.1"],
        ["rank_0.log", "rank_1.log"],
        ["a/0", "a/1"],
        ["model.bin", "v1.2"],
        [],
    ],
)
def test_other_files_are_no_parts(paths: list[str]) -> None:
    assert not parts_of(paths)


def events(folder: Path, files: dict[str, str]) -> EventTable:
    folder.mkdir()
    for name, text in files.items():
        data = text.encode()
        (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    sources, _skipped = discover(folder)
    read = [read_source(source, INGESTORS, IngestContext())[1] for source in sources]
    return EventTable.from_parts([item.events for item in read if item is not None])


def lines(first: int, last: int, *, clock: bool = False) -> str:
    return "".join(
        (f"2026-11-30 {10 + step // 60:02d}:{step % 60:02d}:00 " if clock else "")
        + f"step {step} loss {3 - step / 200}\n"
        for step in range(first, last)
    )


def test_a_rotated_log_is_one_series(tmp_path: Path) -> None:
    table = events(tmp_path / "a", {"t.log.2.gz": lines(0, 40), "t.log.1": lines(40, 80), "t.log": lines(80, 90)})
    (series,) = table.all_metrics("loss")
    assert list(series.step) == list(range(90))
    assert series.source == "t.log"
    assert np.all(np.diff(series.event_id) > 0)


def test_times_decide_before_names(tmp_path: Path) -> None:
    table = events(tmp_path / "a", {"t.log.1": lines(0, 40, clock=True), "t.log.2": lines(40, 80, clock=True)})
    (series,) = table.all_metrics("loss")
    assert list(series.step) == list(range(80))


def test_runs_that_begin_again_stay_apart(tmp_path: Path) -> None:
    table = events(tmp_path / "a", {"t.log.1": lines(0, 40), "t.log.2": lines(0, 30)})
    assert sorted(len(series) for series in table.all_metrics("loss")) == [30, 40]


def test_a_resumed_run_in_one_rotated_log_falls_back(tmp_path: Path) -> None:
    table = events(tmp_path / "a", {"t.log.1": lines(0, 40), "t.log": lines(30, 60)})
    (series,) = table.all_metrics("loss")
    assert list(series.step) == [*range(40), *range(30, 60)]

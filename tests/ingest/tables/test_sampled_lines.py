from __future__ import annotations

import gzip
import math
from pathlib import Path

import pytest

from rca.ingest.interface import IngestContext, Limits, Source
from rca.ingest.read import read_source
from rca.ingest.registry import INGESTORS
from rca.ingest.tables import sampled_lines
from rca.ingest.tables.sampled_lines import read_sampled

ROWS = 5_000


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled_lines, "MAX_SAMPLED", 16_384)
    monkeypatch.setattr(sampled_lines, "_END", 4_096)
    monkeypatch.setattr(sampled_lines, "_STEP", 10_000)


def source(file: Path) -> Source:
    return Source(path=file.name, file=file, size=file.stat().st_size)


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("packed", [False, True])
def test_both_ends_are_whole_and_every_kept_line_has_its_number(tmp_path: Path, end: str, packed: bool) -> None:
    text = ("\n".join(f"line {number}" for number in range(1, ROWS + 1)) + end).encode()
    file = tmp_path / ("x.csv.gz" if packed else "x.csv")
    file.write_bytes(gzip.compress(text) if packed else text)
    found = read_sampled(source(file), IngestContext())
    lines = found.data.decode().splitlines()
    assert found.numbers is not None
    assert [f"line {number}" for number in found.numbers.tolist()] == lines
    assert lines[0] == "line 1"
    assert lines[-1] == f"line {ROWS}"
    assert len(found.data) < 17_000
    assert "one in" in found.warnings[-1]


def test_lines_that_never_end_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b'{"a": 1}\n' + b"x" * 30_000 + b"\n" + b'{"a": 2}\n' * 3_000)
    found = read_sampled(source(file), IngestContext())
    assert found.numbers is not None
    assert set(found.data.splitlines()) == {b'{"a": 1}', b'{"a": 2}'}
    assert found.numbers[-1] == 3_002
    file.write_bytes(b"x" * 40_000)
    assert read_sampled(source(file), IngestContext()).data == b""


def test_a_line_that_the_limit_cuts_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_bytes(b"step,loss\n" + b"1,2.5\n" * 10_000)
    context = IngestContext(limits=Limits(source_bytes=40_001))
    found = read_sampled(source(file), context)
    assert found.data.endswith(b"1,2.5\n")
    assert len(found.data) < 17_000


@pytest.mark.parametrize(
    ("name", "head", "row"),
    [
        ("metrics.csv", "step,loss\n", "{step},{loss}\n"),
        ("history.jsonl", "", '{{"step": {step}, "loss": {loss}}}\n'),
        ("mlruns/0/abc/metrics/loss", "", "1700000000000 {loss} {step}\n"),
    ],
)
def test_the_end_of_a_long_history_is_read_with_its_lines(tmp_path: Path, name: str, head: str, row: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    body = "".join(row.format(step=step, loss="NaN" if step > 4_990 else 2.5) for step in range(1, ROWS + 1))
    file.write_text(head + body)
    given = Source(path=name, file=file, size=file.stat().st_size)
    record, ingested = read_source(given, INGESTORS, IngestContext())
    assert ingested is not None
    assert "one in" in record.warnings[0]
    events = ingested.events.filter(ingested.events["name"].cast("string").to_numpy() == "loss")
    offset = head.count("\n")
    assert [line - offset for line in events["line"].to_pylist()] == events["step"].to_pylist()
    assert events["step"].to_pylist()[-1] == ROWS
    assert sum(math.isnan(value) for value in events["value"].to_pylist()) == 10

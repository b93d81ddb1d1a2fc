"""A log of any size through a few windows: as its bytes, cut in the middle, cut short and grown meanwhile."""

from __future__ import annotations

import gzip
import io
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rca.ingest.interface import IngestContext, Limits, Source
from rca.ingest.logs import text_document
from rca.ingest.logs import windows as module
from rca.ingest.logs.text import TextIngestor
from rca.ingest.logs.windows import Windows, open_windows
from rca.ingest.registry import AFTER_METRICS, BLOCKS
from rca.rules.schema import Signature
from tests.benchmarks.scale.fresh import measure

BOOM = Signature(id="a.boom", emitter="x", pattern=r"boom \d+", matches=("boom 1",))
TEXT = b"".join(b"line %d\n" % number for number in range(1, 2001))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAGE", 64)
    monkeypatch.setattr(text_document, "_CHUNK", 256)


@settings(max_examples=100, deadline=None)
@given(
    data=st.binary(max_size=400),
    start=st.integers(-450, 450),
    stop=st.integers(-450, 450),
    what=st.binary(min_size=1, max_size=3),
)
def test_slices_and_places_are_those_of_the_bytes(data: bytes, start: int, stop: int, what: bytes) -> None:
    module._PAGE = 16
    view = Windows(io.BytesIO(data))
    assert len(view) == len(data)
    assert view[start:stop] == data[start:stop]
    assert view.find(what) == data.find(what)
    assert view.find(what, abs(start), abs(stop)) == data.find(what, abs(start), abs(stop))
    assert not data or (view[-1], view[0]) == (data[-1], data[0])


def read(file: Path, **limits: int):
    source = Source(file.name, file, file.stat().st_size)
    context = IngestContext(signatures=(BOOM,), limits=Limits(**limits))
    return TextIngestor(BLOCKS, after_metrics=AFTER_METRICS).read(source, context)


def test_the_beginning_and_the_end_of_a_log_that_is_too_large(tmp_path: Path) -> None:
    file = tmp_path / "train.log"
    file.write_bytes(b"boom 1\n" + TEXT + b"boom 2\n")
    found = read(file, plain_bytes=3000)
    first, last = found.events.to_pylist()
    assert (first["offset"], last["offset"]) == (0, file.stat().st_size - 7)
    assert found.bytes == 3000
    assert found.warnings == (
        f"Only the first 1,500 and the last 1,500 of {file.stat().st_size:,} bytes were read; line numbers behind the "
        "gap count the lines that were read.",
    )


def test_a_log_that_shrinks_or_grows_meanwhile_is_read_with_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "train.log"
    for size in (100, 50_000):
        file.write_bytes(TEXT)
        with open_windows(Source("train.log", file, len(TEXT)), Limits()) as opened:
            os.truncate(file, size)
            document = text_document.TextDocument(Source("train.log", file, 0), opened.data, Limits())
            kept = b"".join(chunk.text.replace(b"\0", b"") for chunk in document.chunks())
            assert kept[:100] == TEXT[:100]
            assert document.raw(1) == "line 1"
            assert len(document.raw(len(document))) < 100
            (told,) = opened.data.problems()
            assert ("cut short" if size == 100 else "grew") in told


def test_a_log_that_is_written_anew_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "train.log"
    file.write_bytes(TEXT)
    with open_windows(Source("train.log", file, len(TEXT)), Limits()) as opened:
        document = text_document.TextDocument(Source("train.log", file, 0), opened.data, Limits())
        file.write_bytes(b"x" * len(TEXT))
        document._blocks.clear()
        opened.data._pages.clear()
        assert len(document.raw(1999)) <= Limits().line_bytes


def test_a_compressed_log_is_the_same(tmp_path: Path) -> None:
    file = tmp_path / "train.log.gz"
    file.write_bytes(gzip.compress(TEXT + b"boom 7\n"))
    (event,) = read(file).events.to_pylist()
    assert (event["line"], event["offset"]) == (2001, len(TEXT))


JOB = """
import sys
from pathlib import Path
from rca.ingest.interface import IngestContext, Source
from rca.ingest.registry import AFTER_METRICS, BLOCKS
from rca.ingest.logs.text import TextIngestor
from rca.rules.schema import Signature
boom = Signature(id="a.boom", emitter="x", pattern=r"boom \\d+", matches=("boom 1",))
file = Path(sys.argv[1])
found = TextIngestor(BLOCKS, after_metrics=AFTER_METRICS).read(
    Source(file.name, file, file.stat().st_size), IngestContext(signatures=(boom,)))
print(found.lines, found.events.num_rows)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lines", "one line", "sparse"])
def test_memory_stays_bounded(tmp_path: Path, kind: str) -> None:
    import sys

    file = tmp_path / "train.log"
    with file.open("wb") as out:
        if kind == "sparse":
            out.seek(1 << 30)
        for _ in range(350):
            out.write(b"an ordinary line of a log that says nothing\n" * 12_000 if kind == "lines" else b"x" * 900_000)
        out.write(b"\nboom 1\n")
    (used,) = measure([sys.executable, "-c", JOB, str(file)])
    assert used.printed.split()[1] == "1"
    assert used.peak_mb < 300


def test_nothing_of_a_log_stays_in_memory_once_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAGE", 1 << 20)
    file = tmp_path / "rank_0.log"
    file.write_bytes(TEXT * 60)
    tracemalloc.start()
    try:
        with open_windows(Source("rank_0.log", file, file.stat().st_size), Limits()) as opened:
            assert opened.data[:7] == b"line 1\n"
            assert tracemalloc.get_traced_memory()[0] > 1 << 19
        assert tracemalloc.get_traced_memory()[0] < 1 << 17  # though `opened` is still referred to
    finally:
        tracemalloc.stop()

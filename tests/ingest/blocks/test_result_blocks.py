"""Classification reports, listings of results and blocks of serving benchmarks in a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from rca.events import EventTable
from rca.ingest.interface import IngestContext
from rca.ingest.places.discover import discover
from rca.ingest.read import read_source
from rca.ingest.registry import INGESTORS


def table(folder: Path, text: str) -> EventTable:
    (folder / "run").mkdir()
    (folder / "run" / "eval.log").write_text(text)
    sources, _skipped = discover(folder / "run")
    read = [read_source(source, INGESTORS, IngestContext())[1] for source in sources]
    return EventTable.from_parts([item.events for item in read if item is not None])


REPORT = """evaluating
              precision    recall  f1-score   support

           O     0.9900    0.9800    0.9850      1200
       B-LOC     0.8000    0.7000    0.7467        60

    accuracy                         0.9761      1260
   macro avg     0.8950    0.8400    0.8658      1260
weighted avg     0.9809    0.9667    0.9737      1260
done
"""


def test_a_classification_report(tmp_path: Path) -> None:
    events = table(tmp_path, REPORT)
    series = events.metric("report.f1")
    assert series is not None
    rows = [events.get(int(event)) for event in series.event_id]
    assert [(row.attr("label"), row.value, row.attr("support")) for row in rows][:2] == [
        ("O", 0.985, 1200),
        ("B-LOC", 0.7467, 60),
    ]
    assert len(rows) == 4
    assert events.metric("report.accuracy") is not None


@pytest.mark.parametrize(("rows", "read"), [(4, True), (2, False)])
def test_a_listing_of_results(tmp_path: Path, rows: int, read: bool) -> None:
    text = (
        "results of base\n" + "".join(f"  score_{'abcd'[place]}   0.{place}123\n" for place in range(rows)) + "done\n"
    )
    events = table(tmp_path, text)
    series = events.metric("listed.score_a")
    assert (series is not None) is read
    if series is not None:
        assert events.get(int(series.event_id[0])).attr("heading") == "results of base"


def test_a_block_of_a_serving_benchmark(tmp_path: Path) -> None:
    block = (
        "============ Serving Benchmark Result ============\n"
        "Successful requests:                     1,000     \n"
        "Max request concurrency:                 16        \n"
        "---------------Time to First Token----------------\n"
        "Mean TTFT (ms):                          81.20     \n"
        "==================================================\n"
    )
    events = table(tmp_path, "$ bench\n" + block + "cut off\n============ Serving Benchmark Result ============\n")
    values = {name: events.metric(name) for name in ("requests_successful", "max_concurrency", "mean_ttft_ms")}
    assert [series.value[0] for series in values.values() if series is not None] == [1000.0, 16.0, 81.2]

"""Where Hyperscan has no wheel the same logs give the same events, only later."""

from __future__ import annotations

from pathlib import Path

import pytest

from rca.ingest.interface import IngestContext, Source
from rca.ingest.logs import line_search, scanner
from rca.ingest.logs.text import TextIngestor
from rca.ingest.registry import AFTER_METRICS, BLOCKS
from rca.rules.load import load
from tests.benchmarks.scale.mixed_logs import write_logs


def events(files: list[Path]) -> list[str]:
    context = IngestContext(signatures=load().patterns)
    rows: list[str] = []
    for file in files:
        source = Source(file.name, file, file.stat().st_size)
        found = TextIngestor(BLOCKS, after_metrics=AFTER_METRICS).read(source, context)
        rows += map(repr, found.events.to_pylist())
    return rows


@pytest.mark.slow
def test_mixed_logs_give_the_same_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hyperscan")
    files = write_logs(tmp_path, 200_000)[:4:3]
    monkeypatch.setattr(line_search, "_known", {})
    monkeypatch.setattr(line_search, "_latest", [])
    fast = events(files)

    def missing(*_: object) -> None:
        raise ImportError("no hyperscan")

    monkeypatch.setattr(scanner, "_HyperscanScanner", missing)
    line_search._known.clear()
    line_search._latest.clear()
    assert events(files) == fast
    assert len(fast) > 300

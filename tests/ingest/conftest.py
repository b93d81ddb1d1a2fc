"""A file of a run directory, read the way the pipeline reads it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rca.diagnosis import SourceRecord
from rca.events import Event, EventTable
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.places.discover import path_host, path_rank
from rca.ingest.read import read_source
from rca.ingest.registry import INGESTORS


@dataclass(frozen=True)
class Read:
    """What became of one file."""

    record: SourceRecord
    table: EventTable
    ingested: Ingested | None

    def config(self) -> dict[str, Any]:
        """Configuration by common name: what a rule would compare."""
        return {event.name: event.attr("value") for event in self.table.of_kind("config")}

    def packages(self) -> dict[str, str]:
        return dict(self.table.packages)

    def one(self, name: str) -> Event:
        found = self.table.named(name)
        assert len(found) == 1, [event.name for event in self.table.events]
        return found[0]

    def metrics(self, name: str) -> list[tuple[int | None, float]]:
        """(step, value) of one metric in the order of the file, all ranks and labels."""
        rows = [row for row in self.table.table.to_pylist() if row["kind"] == "metric" and row["name"] == name]
        return [(row["step"], row["value"]) for row in sorted(rows, key=lambda row: row["line"] or 0)]

    def labels(self, name: str) -> list[dict[str, Any]]:
        rows = [row for row in self.table.table.to_pylist() if row["kind"] == "metric" and row["name"] == name]
        return [json.loads(row["attrs"]) if row["attrs"] else {} for row in rows]


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Read]:
    """Write files into a run directory and read the first of them."""

    def go(name: str, content: str | bytes | dict[str, Any] | list[Any], **others: str | bytes) -> Read:
        run = tmp_path / "run"
        data = json.dumps(content) if isinstance(content, (dict, list)) else content
        for path, item in {name: data, **{key.replace("__", "."): value for key, value in others.items()}}.items():
            file = run / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(item.encode() if isinstance(item, str) else item)
        file = run / name
        source = Source(name, file, file.stat().st_size, path_rank(name), path_host(name))
        record, ingested = read_source(source, INGESTORS, IngestContext())
        parts = [] if ingested is None else [ingested.events]
        return Read(record, EventTable.from_parts(parts), ingested)

    return go

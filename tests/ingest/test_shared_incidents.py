"""Every structured file of the labelled incidents is read by the reader for it, and says something."""

from __future__ import annotations

from pathlib import Path

from rca.events import EventTable
from rca.ingest.interface import IngestContext
from rca.ingest.places.discover import discover
from rca.ingest.read import read_source
from rca.ingest.registry import INGESTORS

KINDS = {
    ".csv": {"metrics table", "gpu readings"},
    ".jsonl": {"metrics lines"},
    ".json": {"settings", "weights (index)"},
    ".yaml": {"settings"},
    ".toml": {"settings"},
    ".sh": {"script"},
    ".safetensors": {"weights (safetensors)", "git-lfs pointer"},
}


def test_structured_files_are_read_and_say_something(shared: Path) -> None:
    wrong = []
    seen = 0
    for case in sorted((shared / "cases").iterdir()):
        sources, _skipped = discover(case / "run")
        for source in sources:
            kinds = KINDS.get(source.file.suffix)
            if kinds is None:
                continue
            seen += 1
            record, _ingested = read_source(source, INGESTORS, IngestContext())
            if record.status != "read" or record.kind not in kinds or not record.events:
                wrong.append((case.name, record))
    assert not wrong
    assert seen > 60


def test_tables_that_tools_print_become_system_events(shared: Path) -> None:
    needles = {
        "system.gpu": b"Persistence-M",
        "system.memory_summary": b"CUDA memory summary, device ID",
        "system.filesystem": b"Mounted on",
        "system.container": b"Restart Count",
        "system.ib_port": b"CA 'mlx",
        "system.process": b"PID USER",
        "files.listing": b"-rw-r--r-- 1 ",
    }
    for case in sorted((shared / "cases").iterdir()):
        for source in discover(case / "run")[0]:
            if source.file.suffix != ".txt":
                continue
            data = source.file.read_bytes()
            _record, ingested = read_source(source, INGESTORS, IngestContext())
            assert ingested is not None
            names = {event.name for event in EventTable.from_parts([ingested.events]).events}
            for name, needle in needles.items():
                assert needle not in data or name in names, (source.path, name)

"""What must hold for whatever a file holds and whatever it is called."""

from __future__ import annotations

from pathlib import Path

from rca.events import EventTable
from rca.ingest.interface import IngestContext, Source
from rca.ingest.places.content import open_source
from rca.ingest.read import read_source
from rca.ingest.registry import INGESTORS

NAMES = (
    "train.log",
    "rank_3.log",
    "stderr.txt",
    "train.log.gz",
    "events.out.tfevents.1700000000.host.1.0",
    "rank0.pt.trace.json",
    "rank0.pt.trace.json.gz",
    "trainer_state.json",
    "config.json",
    "tokenizer.json",
    "history.json",
    "pod.json",
    "events.json",
    "error.json",
    "log.jsonl",
    "metrics.csv",
    "gpu.csv",
    "config.yaml",
    "pod.yaml",
    "job.toml",
    "requirements.txt",
    "environment.yml",
    "uv.lock",
    "model.safetensors",
    "model.safetensors.index.json",
    "model.gguf",
    "model.pt",
    "SHA256SUMS",
    "metrics.prom",
    "nvidia-smi.txt",
    "dmesg.txt",
    "sacct.txt",
    "py-spy.txt",
    "nccl_trace_rank_0",
    "snapshot.pickle",
    "run-abc.wandb",
    "wandb-summary.json",
    "mlruns/0/a/metrics/loss",
    "mlruns/0/a/params/lr",
    "mlruns/0/a/meta.yaml",
    "launch.sh",
    "train.py",
)
"""Names that lead to all readers."""


def check(folder: Path, name: str, data: bytes, context: IngestContext) -> None:
    """Read bytes under a name; raise what a reader raises, and AssertionError for what may not be."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    source = Source(name, file, len(data))
    record, ingested = read_source(source, INGESTORS, context)
    assert (record.status == "read") == (ingested is not None)
    if ingested is None:
        assert record.why, f"{name} is skipped without a reason"
        return
    table = EventTable.from_parts([ingested.events], text_sources=int(ingested.text))
    for event in table.events:
        assert len(event.text or "") <= 4096
    if ingested.text:
        lines_are_right(source, table)


def lines_are_right(source: Source, table: EventTable) -> None:
    """Check that offset and line of every event of a log name the start of the same line."""
    with open_source(source.file) as stream:
        data = stream.read()
    columns = table.table.select(["name", "line", "offset"]).to_pydict()
    places = zip(columns["name"], columns["line"], columns["offset"], strict=True)
    for name, line, offset in {place for place in places if None not in place[1:]}:
        before = data[:offset]
        assert offset <= len(data)
        assert before.count(b"\n") + 1 == line, f"{name} is said to be on line {line}"
        # A progress bar rewrites its line: a state of it starts after a carriage return.
        assert not before or before.endswith((b"\n", b"\r")), f"{name} starts inside line {line}"

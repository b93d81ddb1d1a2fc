"""Flight-recorder dumps for tests: recorded ones, and ones written in the shape of ProcessGroupNCCL."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rca.events import EventTable
from rca.facts.registry import extract
from rca.ingest.dumps.flight_recorder import FlightRecorderIngestor
from rca.ingest.interface import IngestContext, Source

RECORDED = Path(__file__).parent / "flight_dumps"
START = 1_700_000_000 * 10**9


def call(
    seq: int,
    op: str = "all_reduce",
    *,
    sizes: list[list[int]] | None = None,
    out: list[list[int]] | None = None,
    dtype: str = "Float",
    state: str = "completed",
    group: tuple[str, str] = ("0", "default_pg"),
    number: int = 0,
    line: int = 10,
    backend: str = "nccl",
    p2p: int = 0,
    **more: Any,
) -> dict[str, Any]:
    inputs = [[64]] if sizes is None else sizes
    outputs = inputs if out is None else out
    frames = [
        {"name": op, "filename": "/opt/venv/lib/python3.11/site-packages/torch/distributed/c10d.py", "line": 1},
        {"name": "step", "filename": "/home/u/job/train.py", "line": line},
    ]
    return {
        "frames": frames,
        "pg_id": number,
        "process_group": group,
        "collective_seq_id": seq,
        "p2p_seq_id": p2p,
        "op_id": seq,
        "profiling_name": f"{backend}:{op}",
        "time_created_ns": START + seq * 10**9,
        "input_sizes": inputs,
        "input_dtypes": [dtype] * len(inputs),
        "output_sizes": outputs,
        "output_dtypes": [dtype] * len(outputs),
        "state": state,
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "retired": state == "completed",
        "timeout_ms": 600_000,
        "is_p2p": bool(p2p),
        **more,
    }


def steps(count: int, **more: Any) -> list[dict[str, Any]]:
    return [call(seq, **more) for seq in range(1, count + 1)]


def dump(
    entries: Iterable[dict[str, Any]],
    *,
    groups: Mapping[tuple[str, str], Iterable[int]] | None = None,
    first: int = 0,
    status: Mapping[str, Mapping[str, int]] | None = None,
) -> dict[str, Any]:
    config = {
        name: {"name": name, "desc": description, "ranks": str(list(ranks))}
        for (name, description), ranks in (groups or {}).items()
    }
    listed = [{"record_id": first + index, **entry} for index, entry in enumerate(entries)]
    return {"version": "2.4", "pg_config": config, "pg_status": dict(status or {}), "entries": listed}


def table(dumps: Mapping[int, dict[str, Any]], folder: Path) -> EventTable:
    for rank, content in dumps.items():
        (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(content, 2))
    return read(folder)


def read(folder: Path) -> EventTable:
    reader = FlightRecorderIngestor()
    parts = []
    for file in sorted(folder.glob("nccl_trace_rank_*")):
        source = Source(path=file.name, file=file, size=file.stat().st_size, rank=int(file.name.rsplit("_", 1)[1]))
        parts.append(reader.read(source, IngestContext()).events)
    return EventTable.from_parts(parts, text_sources=0)


def values(events: EventTable) -> dict[str, Any]:
    return {name: fact.value for name, fact in extract(events).items() if name.startswith("collective.")}


def matched(dumps: Mapping[int, dict[str, Any]], folder: Path) -> dict[str, Any]:
    return values(table(dumps, folder))

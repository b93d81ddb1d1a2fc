"""What was analysed: extent in time, steps, ranks and hosts, and the frameworks that left their mark."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from rca.collect.evidence import iso
from rca.diagnosis import Experiment, Run, SourceRecord
from rca.events import EventTable

_FRAMEWORKS = (
    "torch", "transformers", "accelerate", "deepspeed", "lightning", "pytorch-lightning", "megatron-core", "fairseq",
    "peft", "trl", "torchtitan", "torchtune", "vllm", "sglang", "onnxruntime", "tensorflow", "jax",
)  # fmt: skip


def overview(name: str, path: str, events: EventTable, sources: Sequence[SourceRecord]) -> Run:
    """Return the extent of the run as its sources show it."""
    times = [int(value) for value in _ends(events.table["time"].cast(pa.int64()))]
    steps = [int(value) for value in _ends(_training_steps(events))]
    return Run(
        name=name,
        path=path,
        files=len(sources),
        bytes=sum(source.bytes for source in sources),
        ranks=events.ranks,
        hosts=events.hosts,
        frameworks=tuple(
            f"{package} {events.packages[package]}" for package in _FRAMEWORKS if package in events.packages
        ),
        started=iso(times[0]) if times else None,
        ended=iso(times[1]) if times else None,
        duration_s=(times[1] - times[0]) / 1e6 if times else None,
        first_step=steps[0] if steps else None,
        last_step=steps[1] if steps else None,
    )


def on_run(experiments: Sequence[Experiment], path: str) -> tuple[Experiment, ...]:
    """Return the experiments with the run that was analysed in the command that repeats each."""
    return tuple(
        item.model_copy(update={"repro": item.repro.replace(" RUN_DIR", f" {shlex.quote(path)}")})
        if item.repro.startswith("rca ")
        else item
        for item in experiments
    )


def _training_steps(events: EventTable) -> pa.ChunkedArray:
    kind = events.table["kind"].cast(pa.string())
    return events.table.filter(pc.equal(kind, "metric"))["step"]


def _ends(column: pa.ChunkedArray) -> tuple[int, int] | tuple[()]:
    ends = pc.min_max(column)
    return () if ends["min"].as_py() is None else (ends["min"].as_py(), ends["max"].as_py())

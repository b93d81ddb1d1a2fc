"""The step breakdown against the figures of torch-tb-profiler 0.4.3 (behind `trace_advice.modernised`) on real traces.

`trace_shares.json` holds its figures for every trace of ../shared that it reads. Left out are the traces on which it
is wrong: those without operators (its step is empty), and those of MTIA devices, whose events it does not know.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from rca.ingest.interface import Limits, Source
from rca.ingest.places.content import open_content
from rca.ingest.traces.advice import read_advice
from rca.ingest.traces.breakdown import breakdown
from rca.ingest.traces.columns import Columns
from rca.ingest.traces.steps import find_steps
from rca.ingest.traces.trace_json import TraceText

FIGURES = json.loads(Path(__file__).with_name("trace_shares.json").read_text(encoding="utf-8"))
COLUMNS = {"cpuop": "cpu_us"}
SMALL = (
    "hta/call_stack/backward_thread.json",
    "hta/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
    "hta/trace_compare/base/base.json.gz",
    "hta/rank_non_gpu/rank_non_gpu.json.gz",
    "hta/cupti_profiler/benchmark_result_924719_1679055439_trace.json.gz",
    "tracelens/traces/h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "tracelens/traces/torch_compile_triton/trace.json.gz",
)


def shares(file: Path) -> list[float]:
    """Our shares of the step, in the order of the figures."""
    columns = Columns()
    with open_content(Source(file.name, file, file.stat().st_size), Limits()) as content:
        for events in TraceText(content.data).batches():
            columns.add(events)
    found = {name: float(column.values.sum()) for name, column in breakdown(columns, find_steps(columns)).items()}
    names = [COLUMNS.get(part, f"{part}_us") for part in FIGURES["parts"]]
    return [found.get(name, 0.0) / found["step_us"] for name in names]


@pytest.mark.slow
def test_every_part_of_every_trace_within_one_percent_of_the_step(shared: Path) -> None:
    assert len(FIGURES["shares"]) >= 50
    for name, theirs in FIGURES["shares"].items():
        assert shares(shared / "data" / name) == pytest.approx(theirs, abs=0.01), name


@pytest.mark.parametrize("name", SMALL)
def test_the_figures_are_what_the_package_says(shared: Path, name: str) -> None:
    file = shared / "data" / name
    data = file.read_bytes()
    told = read_advice(gzip.decompress(data) if file.suffix == ".gz" else data).shares
    assert [told[part] for part in FIGURES["parts"]] == pytest.approx(FIGURES["shares"][name], abs=1e-4)
    assert shares(file) == pytest.approx(FIGURES["shares"][name], abs=0.01)

"""The generated jobs of many ranks: always the same, and small ones of every layout are understood."""

from __future__ import annotations

from pathlib import Path

import pytest

from rca.pipeline import Options, examine
from rca.rules.load import load
from tests.benchmarks.scale.rank_logs import FAULTS, LAYOUTS, Job, write


def contents(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_the_same_job_is_the_same_bytes(tmp_path: Path) -> None:
    job = Job(ranks=16, total=16 * 4000, fault="segfault", layout="node")
    written = [write(job, tmp_path / name) for name in "ab"]
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert written[0] == written[1] == sum(len(data) for data in contents(tmp_path / "a").values())


@pytest.mark.parametrize(
    ("fault", "layout"),
    [("gpu_memory", "rank"), ("segfault", "elastic"), ("host_memory", "srun"), ("memory_error", "node")],
)
def test_the_first_rank_and_the_cause_are_found(fault: str, layout: str, tmp_path: Path) -> None:
    assert set(FAULTS) >= {fault}
    assert layout in LAYOUTS
    job = Job(ranks=24, total=24 * 4000, fault=fault, layout=layout)
    write(job, tmp_path / "job")
    found = examine(tmp_path / "job", load(()), options=Options(experiments="none")).diagnosis
    assert found.failure is not None
    assert found.failure.rank == job.first
    assert found.verdict.cause in job.what["causes"]

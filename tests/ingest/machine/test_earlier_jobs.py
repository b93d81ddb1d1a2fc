"""What the kernel said before a run began is not held against it, unless its clock may be of another zone."""

from __future__ import annotations

from pathlib import Path

import pytest

from rca.investigation import Options
from rca.pipeline import Analysis, examine
from rca.rules.load import load

RUN = """2026-03-01 10:00:00,000 INFO start of training
2026-03-01 10:00:05,000 INFO step 1 loss 2.5
2026-03-01 10:00:09,000 INFO step 2 loss 2.4
Traceback (most recent call last):
  File "/job/train.py", line 12, in <module>
    loss = model(batch)
RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x10 and 20x5)
"""
KILL = (
    "Out of memory: Killed process 261 (python) total-vm:84361204kB, anon-rss:60131232kB, file-rss:0kB, shmem-rss:0kB"
)
KNOWLEDGE = load(())


def analysis(folder: Path, *kernel: str) -> Analysis:
    (folder / "train.log").write_text(RUN)
    (folder / "dmesg.txt").write_text("".join(f"[Sun Mar  1 {line}\n" for line in kernel))
    return examine(folder, KNOWLEDGE, options=Options(experiments="none"))


def kernel_rows(found: Analysis) -> int:
    return sum(event.source == "dmesg.txt" and event.name.startswith("kernel.") for event in found.events.events)


@pytest.mark.parametrize(
    "kernel",
    [
        (f"01:07:38 2026] {KILL}",),
        (f"01:00:00 2026] {KILL}", "10:00:30 2026] eth0: link is not ready"),
    ],
    ids=["no zone brings it near", "the record reaches into the run"],
)
def test_earlier_rows_are_left_aside_and_told(tmp_path: Path, kernel: tuple[str, ...]) -> None:
    found = analysis(tmp_path, *kernel)
    assert kernel_rows(found) == 0
    assert any(
        "dmesg.txt: " in warning and "reports from before the run" in warning for warning in found.diagnosis.warnings
    )
    assert found.diagnosis.verdict.cause != "memory.host_oom"


@pytest.mark.parametrize(
    "kernel",
    [
        (f"02:00:08 2026] {KILL}",),
        (f"09:55:00 2026] {KILL}",),
        (f"10:00:08 2026] {KILL}",),
        (f"18:00:08 2026] {KILL}",),
    ],
    ids=["eight hours by its zone", "right before", "within", "later by its zone"],
)
def test_rows_that_may_be_of_the_run_are_kept(tmp_path: Path, kernel: tuple[str, ...]) -> None:
    found = analysis(tmp_path, *kernel)
    assert kernel_rows(found) == 1
    assert not any("before the run" in warning for warning in found.diagnosis.warnings)


def test_kernel_lines_in_the_log_of_the_run_are_kept(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(f"2026-03-01 01:03:38,000 kernel: {KILL}\n{RUN}")
    found = examine(tmp_path, KNOWLEDGE, options=Options(experiments="none"))
    assert any(event.name.startswith("kernel.") for event in found.events.events)

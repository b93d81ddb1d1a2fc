"""What the machine shows beside the job."""

from __future__ import annotations

import pytest

from ..tables import Run, decay

GIB = 2**30


def beside(*, used: float, utilization: float, process: str | None = None, failed: bool = False) -> object:
    run = Run().curves({"loss": decay(30)})
    attrs = {"index": 0, "memory_total_bytes": 11 * GIB, "memory_used_bytes": used * GIB, "utilization": utilization}
    run.source("smi.txt").add(kind="system", name="system.gpu", attrs=attrs, line=1)
    if process:
        run.source("smi.txt").add(kind="system", name="system.gpu_process", attrs={"type": process, "gpu": 0}, line=2)
    if failed:
        run.raised("ValueError", "bad")
    return run.values().get("gpu.idle_beside_job")


def test_devices_that_stand_idle_while_the_job_trains() -> None:
    assert beside(used=0.4, utilization=1, process="G") is True


@pytest.mark.parametrize(("used", "utilization", "process"), [(0.4, 1, "C"), (8.0, 1, None), (0.4, 93, None)])
def test_devices_at_work(used: float, utilization: float, process: str | None) -> None:
    assert beside(used=used, utilization=utilization, process=process) is False


def test_after_a_failure_idle_devices_mean_nothing() -> None:
    assert beside(used=0.4, utilization=1, failed=True) is None

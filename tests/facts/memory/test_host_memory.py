from __future__ import annotations

import numpy as np
import pytest

from ..tables import Run, around


def reported(name: str, values: object, unit: str = "") -> Run:
    run = Run()
    builder = run.source("train.log")
    for index, value in enumerate(values):  # type: ignore[arg-type]
        line = run.line("train.log")
        builder.add(kind="metric", name=name, value=float(value), unit=unit or None, step=index, line=line)
    return run


@pytest.mark.parametrize("name", ["host_rss", "rss", "ram_used", "cpu_mem_gb", "host mem", "system.memory"])
def test_growth(name: str) -> None:
    assert reported(name, np.linspace(20, 90, 60)).values()["memory.host_grows"] is True
    assert reported(name, around(20, 60, 0.01)).values()["memory.host_grows"] is False


@pytest.mark.parametrize("name", ["ramp", "frames", "memory_allocated", "gpu_ram", "params"])
def test_other_names_are_no_host_memory(name: str) -> None:
    assert "memory.host_grows" not in reported(name, np.linspace(20, 90, 60)).values()


def test_percent_of_the_host() -> None:
    assert reported("ram", [80, 90, 96.5], "%").values()["memory.host_last_share"] == pytest.approx(0.965)


def test_size_of_the_host() -> None:
    run = reported("host_rss", [200, 220, 240], "gb")
    assert "memory.host_last_share" not in run.values()
    run.source("free.txt").add(kind="system", name="system.memory", attrs={"total_bytes": 256 * 2**30}, line=1)
    assert run.values()["memory.host_last_share"] == pytest.approx(240 / 256)
    run.source("pod.yaml").add(
        kind="system", name="system.container", attrs={"memory_limit_bytes": 250 * 2**30}, line=1
    )
    assert run.values()["memory.host_last_share"] == pytest.approx(240 / 250)

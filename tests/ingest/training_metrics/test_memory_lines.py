"""Device and host memory as DeepSpeed prints them."""

from __future__ import annotations

from rca.ingest.training_metrics.memory_lines import memory_lines


def test_host_memory() -> None:
    found = {pair.name: pair.value for pair in memory_lines("CPU Virtual Memory:  used = 571.93 GB, percent = 56.8%")}
    assert found == {"host_memory": 571.93, "host_memory_percent": 56.8}


def test_device_memory() -> None:
    line = "MA 0.13 GB         Max_MA 0.2 GB         CA 1.78 GB         Max_CA 2 GB "
    assert {pair.name: pair.value for pair in memory_lines(line)} == {"memory_allocated": 0.13, "memory_reserved": 1.78}


def test_other_lines_hold_none() -> None:
    assert memory_lines("MA is the moving average, 0.3 GB") == []

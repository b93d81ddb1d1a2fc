from __future__ import annotations

import numpy as np
import pytest

from ..tables import Run, around, decay


def steady(level: float = 40.0, count: int = 200) -> np.ndarray:
    return level + np.random.default_rng(0).normal(0, 0.05, count)


def test_steady_memory_does_not_grow() -> None:
    found = Run().curves({"memory_allocated": steady()}).values()
    assert found["memory.grows"] is False
    assert abs(found["memory.growth_share"]) < 0.01


def test_leak() -> None:
    found = Run().curves({"memory_allocated": steady() + np.linspace(0, 20, 200)}).values()
    assert found["memory.grows"] is True
    assert found["memory.growth_gib_per_step"] == pytest.approx(0.1, rel=0.1)
    assert found["memory.peak_gib"] > 55


def test_a_slow_leak_beside_large_weights_rises_along_a_line() -> None:
    along = 40 + np.linspace(0, 4, 120) + np.random.default_rng(1).normal(0, 0.01, 120)
    assert Run().curves({"memory_allocated": along}).values()["memory.grows"] is True
    unsteady = along + np.random.default_rng(1).normal(0, 1.5, 120)
    assert Run().curves({"memory_allocated": unsteady}).values()["memory.grows"] is False
    assert Run().curves({"memory_allocated": along[:20]}).values()["memory.grows"] is False


def test_leak_tells_when_the_device_is_full() -> None:
    run = Run().curves({"memory_allocated": steady() + np.linspace(0, 20, 200)})
    run.source("smi").add(kind="system", name="system.gpu", attrs={"memory_total_bytes": 80 * 2**30}, line=1)
    assert run.values()["memory.steps_to_full"] == pytest.approx(200, rel=0.2)


def test_growth_that_ends_in_a_plateau_is_none() -> None:
    memory = np.concatenate([np.linspace(20, 40, 80), 40 + np.zeros(120)])
    assert Run().curves({"memory_allocated": memory}).values()["memory.grows"] is False


def test_start_of_a_run_is_no_growth() -> None:
    memory = np.concatenate([[2.0, 10.0, 30.0], 40 + np.zeros(60)])
    assert Run().curves({"memory_allocated": memory}).values()["memory.grows"] is False


def test_the_rank_that_leaks_is_found() -> None:
    run = Run().curves({"memory_allocated": steady()}, source="rank_0.log", rank=0)
    run.curves({"memory_allocated": steady(count=150) + np.linspace(0, 20, 150)}, source="rank_1.log", rank=1)
    facts = run.facts()
    assert facts["memory.grows"].value is True
    assert "rank 1" in facts["memory.grows"].says


def test_reserved_memory_that_grows_alone() -> None:
    curves = {"memory_reserved": np.linspace(30, 60, 100), "memory_allocated": around(25, 100, 0.01)}
    assert Run().curves(curves).values()["memory.reserved_grows"] is True
    both = {"memory_reserved": np.linspace(30, 60, 100), "memory_allocated": np.linspace(25, 55, 100)}
    assert Run().curves(both).values()["memory.reserved_grows"] is False


def test_batch_and_length_at_the_failure() -> None:
    lengths = np.append(around(500, 60, 0.2), 8000.0)
    run = Run().config(batch_size=4).curves({"loss": decay(61), "sequence_length": lengths})
    found = run.raised("torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB.").values()
    assert found["memory.batch"] == 4
    assert found["memory.seq_outlier"] == pytest.approx(16, rel=0.2)
    calm = Run().curves({"sequence_length": around(500, 60, 0.1)}).values()
    assert calm["memory.seq_outlier"] < 2

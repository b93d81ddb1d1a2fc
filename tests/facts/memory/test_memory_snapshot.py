from __future__ import annotations

from typing import Any

from ..tables import Run

GIB = 1024**3
PLACES = [{"where": "job/train.py:44 in log_loss", "bytes": 3 * GIB, "blocks": 60}]


def snapshot(run: Run, **more: Any) -> Run:
    attrs = {
        "device": 0,
        "active_bytes": 4 * GIB,
        "reserved_bytes": 6 * GIB,
        "largest_free_bytes": GIB // 4,
        "history": 400,
        "places": PLACES,
        **more,
    }
    run.source("snapshot.pickle").add(kind="system", name="system.memory_summary", line=1, attrs=attrs)
    return run


def refused(run: Run, tried: float, idle: float, *, device: int = 0, free: float = 0.0) -> Run:
    sizes = {"tried_bytes": tried, "free_bytes": free, "allocated_bytes": 4, "reserved_unallocated_bytes": idle}
    attrs = {"gpu": device, "frames": [], **{key: int(value * GIB) for key, value in sizes.items()}}
    run.source("snapshot.pickle").add(kind="system", name="memory.refused", line=1, attrs=attrs, severity="error")
    return run


def test_pieces_that_are_each_too_small() -> None:
    found = refused(snapshot(Run()), 0.5, 2).values()
    assert found["memory.pieces"] is True
    assert found["memory.snapshot_refused"] == 1
    assert found["oom.tried_gib"] == 0.5


def test_too_little_idle_or_a_piece_that_fits_is_no_fragmentation() -> None:
    assert refused(snapshot(Run()), 3, 2).values()["memory.pieces"] is False
    assert refused(snapshot(Run()), 0.2, 2).values()["memory.pieces"] is False
    assert "memory.pieces" not in refused(snapshot(Run()), 0.5, 2, device=1).values()


def test_the_place_that_holds_most() -> None:
    found = snapshot(Run()).values()
    assert found["memory.top_place"] == "job/train.py:44 in log_loss"
    assert found["memory.top_share"] == 0.75
    assert "memory.floor_rises" not in found


def test_a_floor_that_rises_throughout_and_one_that_rises_once() -> None:
    steady = [GIB + index * GIB // 10 for index in range(20)]
    once = [GIB // 100] * 3 + [GIB] * 17
    growing = {"where": "a.py:1 in f", "bytes": 2 * GIB, "blocks": 100}
    found = snapshot(Run(), floor_bytes=steady, growing=growing).values()
    assert found["memory.floor_rises"] is True
    assert found["memory.growing_place"] == "a.py:1 in f"
    assert found["memory.growing_gib"] == 2
    assert snapshot(Run(), floor_bytes=once).values()["memory.floor_rises"] is False
    assert snapshot(Run(), floor_bytes=steady[::-1]).values()["memory.floor_rises"] is False


def test_a_printed_summary_is_no_snapshot() -> None:
    run = Run()
    run.source("train.log").add(kind="system", name="system.memory_summary", attrs={"active_bytes": 5, "retries": 3})
    assert "memory.snapshot_gib" not in run.values()


def test_a_log_that_tells_of_the_refusal_counts_first() -> None:
    run = refused(snapshot(Run()), 0.5, 2)
    text = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB"
    run.log("cuda.oom", text)
    assert run.values()["oom.tried_gib"] == 2


def test_the_size_of_the_device_comes_from_a_table_of_devices() -> None:
    run = refused(snapshot(Run()), 0.5, 2, free=1)
    run.source("gpus.csv").add(kind="system", name="system.gpu", attrs={"index": 0, "memory_total_bytes": 40 * GIB})
    assert run.values()["oom.capacity_gib"] == 40
    run.source("gpus.csv").add(kind="system", name="system.gpu", attrs={"index": 1, "memory_total_bytes": 80 * GIB})
    assert "oom.capacity_gib" not in run.values()

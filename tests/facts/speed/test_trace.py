from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from rca.facts.speed.trace import breakdowns

from ..tables import Run

GPU = {
    "step_us": [1000, 1000, 1000],
    "kernel_us": [500, 500, 500],
    "memcpy_us": [10, 10, 10],
    "memset_us": [0, 0, 0],
    "communication_us": [90, 90, 90],
    "runtime_us": [50, 50, 50],
    "dataloader_us": [200, 200, 200],
    "cpu_us": [100, 100, 100],
    "other_us": [50, 50, 50],
    "busy_us": [600, 600, 600],
    "collective_us": [180, 180, 180],
    "exposed_collective_us": [90, 90, 90],
    "kernels": [50, 50, 50],
    "kernel_sum_us": [500, 500, 500],
    "matmul_sum_us": [400, 400, 400],
    "tensor_core_sum_us": [100, 100, 100],
    "launches": [50, 50, 50],
    "graph_launches": [0, 0, 0],
    "syncs": [2, 4, 6],
    "sync_us": [10, 10, 10],
    "copies_to_host": [1, 1, 1],
    "copies_to_host_us": [5, 5, 5],
    "copies_to_device_us": [15, 15, 15],
    "items": [3, 3, 3],
}


def traced(
    figures: Mapping[str, Sequence[float]], *, rank: int | None = None, steps: bool = True, run: Run | None = None
) -> Run:
    named = {f"trace.{name}": values for name, values in figures.items()}
    return (run or Run()).curves(named, start=10, source=f"rank{rank}.pt.trace.json", rank=rank, steps=steps)


def span(run: Run, name: str, category: str, duration: float, *, calls: int, rank: int) -> None:
    attrs = {"category": category, "calls": calls, "mean_us": duration / calls}
    run.source(f"rank{rank}.pt.trace.json", rank).add(kind="span", name=name, duration_us=duration, attrs=attrs)


def test_shares_of_the_step() -> None:
    found = traced(GPU).values()
    expected = {
        "trace.steps": 3,
        "trace.step_s": 0.001,
        "trace.kernel_share": 0.5,
        "trace.communication_share": 0.09,
        "trace.runtime_share": 0.05,
        "trace.dataloader_share": 0.2,
        "trace.cpu_share": 0.1,
        "trace.other_share": 0.05,
        "trace.idle_share": 0.4,
        "trace.communication_overlap": 0.5,
        "trace.mean_kernel_us": 10,
        "trace.launches_per_step": 50,
        "trace.syncs_per_step": 4,
        "trace.sync_share": 0.01,
        "trace.items_per_step": 3,
        "trace.copies_to_host_per_step": 1,
        "trace.copy_share": 0.02,
        "trace.tensor_core_share": 0.2,
        "trace.matmul_share": 0.8,
        "trace.tensor_core_of_matmul": 0.25,
        "trace.graph_launches": False,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_a_trace_of_the_host_says_nothing_of_devices() -> None:
    found = traced({"step_us": [100.0] * 3, "dataloader_us": [90.0] * 3, "cpu_us": [5.0] * 3, "other_us": [5.0] * 3})
    names = {name for name in found.values() if name.startswith("trace.")}
    assert "trace.dataloader_share" in names
    assert not names & {"trace.kernel_share", "trace.idle_share", "trace.mean_kernel_us", "trace.tensor_core_share"}


def test_without_marked_steps_idle_time_is_not_told() -> None:
    whole = {name: values[:1] for name, values in GPU.items()}
    found = traced(whole, steps=False).facts()
    assert "trace.idle_share" not in found
    assert "trace.steps" not in found
    assert "whole trace" in found["trace.kernel_share"].says


def test_one_operation_or_one_step_speaks_less_than_a_model_over_several_steps() -> None:
    assert traced(GPU).values()["trace.thin"] is False
    assert traced(GPU).values()["trace.single_step"] is False
    first = {name: values[:1] for name, values in GPU.items()}
    assert traced(first).values()["trace.single_step"] is True
    assert traced({**GPU, "kernels": [4, 4, 4]}).values()["trace.thin"] is True
    assert "trace.thin" not in traced({"step_us": [100.0] * 3, "cpu_us": [95.0] * 3, "other_us": [5.0] * 3}).values()


def test_traces_with_marked_steps_go_first() -> None:
    run = traced(GPU, rank=0)
    traced({"step_us": [1e9], "kernel_us": [0.0]}, rank=1, steps=False, run=run)
    assert run.values()["trace.kernel_share"] == 0.5


def test_shares_over_several_ranks() -> None:
    run = traced(GPU, rank=0)
    traced({**GPU, "kernel_us": [300.0] * 3}, rank=1, run=run)
    found = run.values()
    assert found["trace.kernel_share"] == pytest.approx(0.4)
    assert found["trace.ranks"] == 2
    assert found["trace.steps"] == 6


def test_memory_that_grows_by_the_step() -> None:
    memory = [2.0, 2.5, 3.0, 3.5, 4.0]
    found = traced({"step_us": [100.0] * 5, "memory_allocated": memory}).values()
    assert found["trace.memory_gib_per_step"] == pytest.approx(0.5)
    assert "trace.memory_gib_per_step" not in traced({"step_us": [100.0] * 2, "memory_allocated": memory[:2]}).values()


def test_the_highest_memory_of_all_ranks() -> None:
    run = traced({**GPU, "memory_peak_allocated": [2.0, 7.0, 3.0]}, rank=0)
    traced({**GPU, "memory_peak_allocated": [5.0, 6.0, 5.0], "memory_peak_reserved": [9.0] * 3}, rank=1, run=run)
    found = run.values()
    assert (found["trace.memory_peak_gib"], found["trace.memory_peak_reserved_gib"]) == (7, 9)


def test_waits_for_the_host_and_compilations() -> None:
    more = {"host_wait_us": [300] * 3, "launch_delay_us": [4, float("nan"), 6], "compile_us": [0, 500, 100],
            "compilations": [0, 2, 1]}  # fmt: skip
    found = traced({**GPU, **more}).values()
    assert found["trace.host_wait_share"] == 0.3
    assert found["trace.launch_delay_us"] == 5
    assert found["trace.compile_share"] == pytest.approx(0.2)
    assert found["trace.compilations_per_step"] == 1


def test_one_step_that_lasts_longer_and_why() -> None:
    figures = {"step_us": [100.0] * 5 + [400.0], "cpu_us": [80.0] * 5 + [90.0], "other_us": [20.0] * 5 + [310.0]}
    found = traced(figures).values()
    assert (found["trace.slow_steps"], found["trace.slow_step_ratio"]) == (1, 4)
    assert found["trace.slow_step_part"] == "other"
    even = traced({"step_us": [100.0] * 6, "cpu_us": [100.0] * 6}).values()
    assert (even["trace.slow_steps"], even["trace.slow_step_ratio"]) == (0, 1)
    assert "trace.slow_step_part" not in even


def test_the_operator_whose_kernels_take_longest() -> None:
    run = traced(GPU, rank=0)
    for name, device, shapes in (("aten::mm", 300.0, "[[8, 8]]"), ("aten::add", 100.0, "")):
        attrs = {"category": "operator", "calls": 2, "mean_us": 1.0, "device_us": device}
        attrs |= {"shapes": [{"inputs": shapes, "calls": 2, "us": device}]} if shapes else {}
        run.source("rank0.pt.trace.json", 0).add(kind="span", name=name, duration_us=2.0, attrs=attrs)
    found = run.values()
    assert (found["trace.top_device_operator"], found["trace.top_input_shapes"]) == ("aten::mm", "[[8, 8]]")
    assert found["trace.top_device_operator_share"] == 0.75


def test_what_takes_most_of_the_time() -> None:
    run = traced(GPU, rank=0)
    span(run, "gemm", "kernel", 900, calls=9, rank=0)
    span(run, "relu", "kernel", 500, calls=5, rank=0)
    span(run, "aten::mm", "operator", 70, calls=7, rank=0)
    found = run.values()
    assert (found["trace.top_kernel"], found["trace.top_operator"]) == ("gemm", "aten::mm")


def test_recommendations_are_joined_by_topic() -> None:
    run = traced(GPU)
    for topic, text in (("memory", "near the limit"), ("data_loading", "40.0% of the step"), ("memory", "near")):
        run.log("torch_tb_profiler.advice", text, role=None, severity="info", topic=topic)
    text = run.values()["trace.recommendations"]
    assert text == "data_loading: 40.0% of the step; memory: near the limit"


def test_breakdowns_for_the_report() -> None:
    run = traced(GPU, rank=1)
    traced({"step_us": [100.0] * 2, "cpu_us": [80.0] * 2, "other_us": [20.0] * 2}, rank=0, run=run)
    span(run, "gemm", "kernel", 900, calls=9, rank=1)
    span(run, "aten::mm", "operator", 999, calls=9, rank=1)
    span(run, "aten::add", "operator", 60, calls=6, rank=0)
    host, device = breakdowns(run.table())
    assert (host.rank, host.step_us, host.shares) == (0, 100, (("cpu", 0.8), ("other", 0.2)))
    assert host.top == (("aten::add", 60, 6),)
    assert device.rank == 1
    assert device.top == (("gemm", 900, 9),)
    assert sum(share for _, share in device.shares) == pytest.approx(1)
    assert device.notes == ("Mean of 3 steps.",)


def test_no_trace_no_breakdown() -> None:
    table = Run().curves({"loss": [1.0, 2.0]}).table()
    assert breakdowns(table) == ()
    assert not [name for name in Run().curves({"loss": [1.0]}).values() if name.startswith("trace.")]


def test_steps_of_no_length_are_left_out() -> None:
    assert not [name for name in traced({"step_us": [0.0], "cpu_us": [0.0]}).values() if name.startswith("trace.")]


def printed(*rows: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    run = Run()
    for name, attrs in rows:
        run.log(name, role="benign", severity="info", **attrs)
    return run.values()


def test_shares_of_a_printed_profiler_table() -> None:
    found = printed(
        ("profiler.op_sync", {"self_share": 70.0, "total_share": 70.0, "calls": 500}),
        ("profiler.op_sync", {"self_share": 1.0, "total_share": 75.5, "calls": 480}),
        ("profiler.op_launch", {"self_share": 5.0, "total_share": 5.0, "calls": 9000}),
        ("profiler.total_cpu", {"seconds": 9.0}),
        ("profiler.total_cuda", {"seconds": 2.25}),
    )
    assert found["profile.sync_share"] == pytest.approx(0.755)
    assert found["profile.syncs"] == 480
    assert found["profile.launch_share"] == pytest.approx(0.05)
    assert found["profile.device_share"] == pytest.approx(0.25)
    assert "profile.dataloader_share" not in found

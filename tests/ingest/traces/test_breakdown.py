from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rca.ingest.traces.totals import totals
from rca.ingest.traces.trace_json import TraceArgs, TraceEvent
from tests.ingest.trace_events import kernel, launch, look, span, step

GIB = 1024.0**3


def test_each_moment_belongs_to_the_first_role_that_is_active() -> None:
    _, windows, found = look(
        [
            step(3, 1000, 100),
            span("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1000, 20),
            span("cpu_op", "aten::mm", 1010, 50),
            launch(1030, 1),
            kernel(1035, 30, 1),
            kernel(1050, 30, 2, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
            span("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 1085, 5, thread=8),
            span("gpu_memset", "Memset (Device)", 1088, 5, thread=8),
        ]
    )
    assert windows.number == (3,)
    parts = {name: values[0] for name, values in found.items()}
    assert parts["kernel_us"] == 30
    assert parts["communication_us"] == 15
    assert parts["memcpy_us"] == 5
    assert parts["memset_us"] == 3
    assert parts["runtime_us"] == 1
    assert parts["dataloader_us"] == 20
    assert parts["cpu_us"] == 14
    assert parts["other_us"] == 12
    assert parts["busy_us"] == 53
    assert parts["collective_us"] == 30
    assert parts["exposed_collective_us"] == 15
    assert (parts["launches"], parts["syncs"], parts["copies_to_host"], parts["kernels"]) == (1, 0, 1, 1)


def test_a_step_reaches_to_its_last_kernel_and_the_next_begins_there() -> None:
    _, windows, _ = look(
        [step(1, 0, 100), step(2, 100, 100), launch(10, 1), launch(110, 2), kernel(20, 130, 1), kernel(150, 90, 2)]
    )
    assert windows.start.tolist() == [0, 150]
    assert windows.end.tolist() == [150, 240]
    assert windows.host_start.tolist() == [0, 100]


def test_work_of_before_the_first_step_is_not_charged_to_it() -> None:
    _, windows, _ = look([step(1, 100, 100), launch(50, 1), kernel(60, 60, 1), launch(130, 2), kernel(140, 20, 2)])
    assert windows.start.tolist() == [120]


def test_a_last_step_that_lacks_kernels_is_left_out() -> None:
    events = [step(number, number * 100, 100) for number in range(3)]
    for number, kernels in ((0, 10), (1, 10), (2, 7)):
        for index in range(kernels):
            identity = number * 100 + index
            events += [launch(number * 100 + index, identity), kernel(number * 100 + index + 1, 1, identity)]
    _, windows, _ = look(events)
    assert windows.number == (0, 1)
    assert windows.dropped == 1


def test_calls_count_for_the_host_step_although_kernels_run_later() -> None:
    _, _, found = look(
        [step(1, 0, 100), step(2, 100, 100), launch(10, 1), launch(110, 2), kernel(20, 190, 1), kernel(210, 30, 2)]
    )
    assert found["launches"] == [1, 1]
    assert found["kernels"] == [1, 1]


def test_without_steps_the_trace_is_one_window() -> None:
    _, windows, found = look([span("cpu_op", "aten::mm", 50, 10), span("cpu_op", "aten::add", 90, 10)])
    assert windows.number == (None,)
    assert found["step_us"] == [50]
    assert found["cpu_us"] == [20]


def test_a_trace_of_the_host_has_no_figures_of_devices() -> None:
    _, _, found = look([step(1, 0, 100), span("cpu_op", "aten::mm", 10, 30)])
    assert "kernel_us" not in found
    assert "busy_us" not in found
    assert "launches" not in found
    assert "dataloader_us" not in found
    assert found["other_us"] == [70]


def test_host_backends_communicate_on_the_host() -> None:
    _, _, found = look([step(1, 0, 100), span("user_annotation", "gloo:all_reduce", 10, 40, thread=9)])
    assert found["communication_us"] == [40]


def test_an_empty_trace_has_no_figures() -> None:
    columns, windows, found = look([])
    assert (len(columns), len(windows), found) == (0, 0, {})
    assert totals(columns, windows, most=5) == []


def test_damaged_numbers_are_left_out() -> None:
    columns, _, found = look(
        [
            step(1, 0, 100),
            span("cpu_op", "aten::mm", -1, 10),
            span("cpu_op", "aten::mm", 10, -1),
            span("cpu_op", "aten::mm", 1e300, 1),
            span("cpu_op", "aten::mm", 10, 1e300),
            span("cpu_op", "aten::mm", float("nan"), 1),
        ]
    )
    assert len(columns) == 1
    assert found["step_us"] == [100]


def test_memory_at_the_end_of_each_step() -> None:
    def memory(time: float, device: int, allocated: float) -> TraceEvent:
        args = TraceArgs(device_type=device, device_id=0, total_allocated=allocated * GIB, total_reserved=8 * GIB)
        return TraceEvent("i", "cpu_instant_event", "[memory]", 1, 1, time, -1, args)

    events = [step(1, 0, 100), step(2, 100, 100), memory(10, 1, 2), memory(90, 1, 3), memory(150, 1, 4)]
    _, _, found = look([*events, memory(160, 0, 1)])
    assert found["memory_allocated"] == [3, 4]
    assert found["memory_reserved"] == [8, 8]
    assert found["host_memory_allocated"][1] == 1
    assert np.isnan(found["host_memory_allocated"][0])


def test_totals_are_sorted_and_operators_count_only_their_own_time() -> None:
    columns, windows, _ = look(
        [
            step(1, 0, 100),
            span("cpu_op", "aten::linear", 10, 50),
            span("cpu_op", "aten::addmm", 20, 30),
            span("cpu_op", "aten::addmm", 70, 5),
            span("cpu_op", "aten::mm", 200, 50),
            launch(25, 1),
            kernel(30, 10, 1, "gemm_a"),
            kernel(45, 20, 1, "gemm_b"),
        ]
    )
    found = [(item.category, item.name, item.duration, item.calls) for item in totals(columns, windows, most=2)]
    assert found == [
        ("kernel", "gemm_b", 20, 1),
        ("kernel", "gemm_a", 10, 1),
        ("runtime", "cudaLaunchKernel", 1, 1),
        ("operator", "aten::addmm", 35, 2),
        ("operator", "aten::linear", 20, 1),
    ]


SPANS = st.lists(
    st.tuples(
        st.sampled_from(["cpu_op", "kernel", "gpu_memcpy", "cuda_runtime", "user_annotation"]),
        st.sampled_from(["aten::mm", "ProfilerStep#1", "ProfilerStep#x", "nccl_kernel", "cudaLaunchKernel", "gloo:x"]),
        st.integers(0, 300),
        st.integers(0, 120),
        st.integers(-1, 5),
    ),
    max_size=40,
)


@settings(max_examples=200, deadline=None)
@given(SPANS)
def test_parts_always_add_up_to_the_step(items: list[tuple[str, str, int, int, int]]) -> None:
    events = [span(category, name, start, dur, correlation=link) for category, name, start, dur, link in items]
    _, windows, found = look(events)
    if not len(windows):
        return
    parts = [name for name in found if name.removesuffix("_us") in {
        "kernel", "memcpy", "memset", "communication", "runtime", "dataloader", "cpu", "other"}]  # fmt: skip
    total = np.sum([found[name] for name in parts], axis=0)
    np.testing.assert_allclose(total, found["step_us"])
    assert all(np.nan_to_num(values).min(initial=0) >= 0 for values in found.values())


@pytest.mark.parametrize("name", ["ProfilerStep#", "ProfilerStep#abc", "ProfilerStep#99999999999999999999"])
def test_a_step_without_a_number_is_still_a_step(name: str) -> None:
    _, windows, _ = look([span("user_annotation", name, 0, 10)])
    assert windows.duration.tolist() == [10]

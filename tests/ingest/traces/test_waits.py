from __future__ import annotations

import numpy as np
import pytest

from rca.ingest.traces.exchanges import exchanges
from tests.ingest.trace_events import kernel, launch, look, span, step


def test_idle_time_for_want_of_a_launch() -> None:
    _, _, found = look(
        [
            step(1, 0, 100),
            *(launch(10, 1), kernel(15, 20, 1)),
            *(launch(60, 2), kernel(65, 10, 2)),
            *(launch(62, 3), kernel(80, 15, 3)),
        ]
    )
    # From 0 to 15 and from 35 to 65 nothing was launched; the launch for the gap from 75 to 80 had come before.
    assert found["host_wait_us"] == [45]
    assert found["launch_delay_us"] == [4]


def test_a_step_without_launches_has_no_delay() -> None:
    _, windows, found = look([step(1, 0, 100), step(2, 100, 100), step(3, 200, 100), launch(110, 1), kernel(120, 5, 1),
                              launch(210, 2), kernel(215, 5, 2)])  # fmt: skip
    assert len(windows) == 3
    assert np.isnan(found["launch_delay_us"][0])
    assert found["launch_delay_us"][1:] == [9, 4]
    assert found["host_wait_us"] == [0, 20, 15]


def test_unlinked_kernels_have_no_waits() -> None:
    _, _, found = look([step(1, 0, 100), span("cuda_runtime", "cudaLaunchKernel", 1, 1), kernel(15, 20, 7)])
    assert "host_wait_us" not in found


def test_time_spent_compiling() -> None:
    _, _, found = look(
        [
            step(1, 0, 100),
            step(2, 100, 100),
            span("cpu_op", "_compile.compile_inner (dynamo_timed)", 10, 50),
            span("cpu_op", "bytecode_tracing (dynamo_timed)", 20, 10),
            span("cpu_op", "_compile.compile_inner (dynamo_timed)", 120, 30),
        ]
    )
    assert found["compile_us"] == [50, 30]
    assert found["compilations"] == [1, 1]


def test_collectives_call_by_call() -> None:
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    columns, windows, _ = look(
        [
            step(4, 0, 100),
            step(5, 100, 100),
            launch(10, 1),
            span("kernel", name, 90, 40, thread=9, correlation=1, collective="allreduce", group="[0, 3]"),
            *(launch(120, 2), kernel(150, 30, 2, name)),
            kernel(500, 30, 3, name),
        ]
    )  # fmt: skip
    assert [tuple(item) for item in exchanges(columns, windows)] == [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 4, 90, 40, (0, 3)),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 5, 150, 30, ()),
    ]


def test_a_trace_without_collectives_has_no_calls() -> None:
    columns, windows, _ = look([step(4, 0, 100), launch(10, 1), kernel(15, 20, 1)])
    assert list(exchanges(columns, windows)) == []


@pytest.mark.parametrize("device", [0, 1])
def test_the_fullest_device_stands_for_memory(device: int) -> None:
    from rca.ingest.traces.trace_json import TraceArgs, TraceEvent

    def memory(time: float, identity: int, allocated: float) -> TraceEvent:
        args = TraceArgs(device_type=1, device_id=identity, total_allocated=allocated * 1024**3, total_reserved=2**33)
        return TraceEvent("i", "cpu_instant_event", "[memory]", 1, 1, time, -1, args)

    events = [memory(10, device, 3), memory(20, device, 9), memory(30, device, 4), memory(40, 1 - device, 1)]
    _, _, found = look([step(1, 0, 100), step(2, 100, 100), *events])
    assert found["memory_allocated"] == [4, 4]
    assert found["memory_peak_allocated"] == [9, 4]

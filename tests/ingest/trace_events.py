"""Events of made-up traces, and what is computed of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rca.ingest.traces.breakdown import breakdown
from rca.ingest.traces.columns import Columns
from rca.ingest.traces.steps import Windows, find_steps
from rca.ingest.traces.trace_json import TraceArgs, TraceEvent


def span(category: str, name: str, start: float, duration: float, *, thread: int = 1, **args: Any) -> TraceEvent:
    return TraceEvent("X", category, name, 1, thread, start, duration, TraceArgs(**args))


def step(number: int, start: float, duration: float) -> TraceEvent:
    return span("user_annotation", f"ProfilerStep#{number}", start, duration)


def launch(start: float, correlation: int) -> TraceEvent:
    return span("cuda_runtime", "cudaLaunchKernel", start, 1, correlation=correlation)


def kernel(start: float, duration: float, correlation: int, name: str = "elementwise_kernel") -> TraceEvent:
    return span("kernel", name, start, duration, thread=7, correlation=correlation)


def look(events: Sequence[TraceEvent]) -> tuple[Columns, Windows, dict[str, list[float]]]:
    columns = Columns()
    columns.add(events[: len(events) // 2])
    columns.add(events[len(events) // 2 :])
    windows = find_steps(columns)
    return columns, windows, {name: item.values.tolist() for name, item in breakdown(columns, windows).items()}

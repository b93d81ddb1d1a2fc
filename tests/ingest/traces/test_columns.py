from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rca.ingest.traces import columns as trace_columns
from rca.ingest.traces.columns import Columns
from rca.ingest.traces.steps import find_steps
from rca.ingest.traces.totals import totals
from rca.ingest.traces.trace_json import TraceArgs, TraceEvent
from tests.ingest.trace_events import kernel, launch, span, step


def event(phase: str, time: float, name: str = "", *, thread: int = 1, **more: Any) -> TraceEvent:
    return TraceEvent(phase, "cpu_op", name, 1, thread, time, **more)


def spans(*events: TraceEvent) -> list[tuple[str, float, float]]:
    columns = Columns()
    for one in events:
        columns.add([one])
    names = [columns.names[key][1] for key in columns.key.tolist()]
    return list(zip(names, columns.start.tolist(), columns.duration.tolist(), strict=True))


def test_begin_and_end_make_a_span_on_each_thread() -> None:
    found = spans(
        event("B", 10, "outer"), event("B", 20, "inner"), event("B", 25, "other", thread=2), event("E", 30),
        event("E", 50), event("E", 60, thread=2),
    )  # fmt: skip
    assert found == [("inner", 20, 10), ("outer", 10, 40), ("other", 25, 35)]


def test_asynchronous_spans_are_joined_by_their_id() -> None:
    found = spans(
        event("b", 1, "send", id=7),
        event("b", 2, "send", id=8),
        event("e", 5, "send", id=7),
        event("e", 9, "send", id=8),
    )
    assert found == [("send", 1, 4), ("send", 2, 7)]


def test_halves_of_spans_are_counted() -> None:
    columns = Columns()
    columns.add([event("B", 1, "open"), event("B", 2, "open too"), event("E", 3), event("E", 4, thread=5)])
    assert (columns.unclosed, columns.unpaired) == (1, 1)


@pytest.mark.parametrize("phase", ["M", "C", "s", "f", "i", "n", ""])
def test_other_events_are_no_spans(phase: str) -> None:
    assert spans(event(phase, 1, "x", dur=5)) == []


def test_more_names_than_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_columns, "MAX_NAMES", 3)
    columns = Columns()
    columns.add([span("kernel", f"kernel{index}", index, 1) for index in range(10)])
    assert len(columns.names) == 4
    assert {category for category, _ in columns.names} == {"kernel"}
    assert len(columns) == 10


def test_operators_with_their_kernels_and_input_shapes() -> None:
    def operator(name: str, start: float, length: float, shapes: str) -> TraceEvent:
        args = TraceArgs(shapes=msgspec.Raw(shapes.encode()))
        return TraceEvent("X", "cpu_op", name, 1, 1, start, length, args)

    columns = Columns()
    columns.add(
        [
            step(1, 0, 1000),
            *(operator("aten::linear", 10, 50, "[[8, 8]]"), operator("aten::addmm", 20, 30, "[[8, 8], []]")),
            *(launch(25, 1), kernel(30, 10, 1)),
            *(operator("aten::addmm", 100, 30, "[[64, 64], []]"), launch(110, 2), kernel(120, 200, 2)),
            *(operator("aten::empty", 400, 500, "[[]]"), launch(950, 3), kernel(960, 5, 3)),
        ]
    )  # fmt: skip
    found = {item.name: item for item in totals(columns, find_steps(columns), most=5) if item.category == "operator"}
    assert found["aten::addmm"].device == 210
    assert found["aten::addmm"].shapes == (("[[64, 64], []]", 1, 200), ("[[8, 8], []]", 1, 10))
    assert (found["aten::linear"].device, found["aten::linear"].duration) == (0, 20)
    assert found["aten::empty"].device == 0

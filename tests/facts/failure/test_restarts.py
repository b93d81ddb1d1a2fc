"""Training that goes back in step, and event files that continue each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from rca.events import EventBuilder, EventTable
from rca.facts.failure.restarts import restarts
from rca.facts.training.curves import curve

FIRST, SECOND = "tb/events.out.tfevents.1.node.1.0", "tb/events.out.tfevents.2.node.1.0"


def table(**files: tuple[list[int], int]) -> EventTable:
    """Make event files: name -> their steps and the second at which the first was written."""
    parts = []
    for name, (steps, begun) in files.items():
        out = EventBuilder({"first": FIRST, "second": SECOND}.get(name, name))
        for place, step in enumerate(steps):
            when = (begun + place) * 1_000_000
            out.add(kind="metric", name="loss", step=step, value=float(begun + place), time=when, line=place + 1)
        parts.append(out.build())
    return EventTable.from_parts(parts)


def facts(events: EventTable) -> dict[str, Any]:
    return {fact.name: fact.value for fact in restarts(events)}


def test_one_file_that_goes_back() -> None:
    found = facts(table(first=([*range(100), *range(60, 150)], 1_000)))
    assert found == {"run.restarts": 1, "run.restart_step": 60, "run.steps_repeated": 39}


def test_a_second_file_that_resumes_before_the_end_of_the_first() -> None:
    events = table(first=(list(range(100)), 1_000), second=(list(range(60, 120)), 2_000))
    assert facts(events) == {"run.restarts": 1, "run.restart_step": 60, "run.steps_repeated": 39}
    line = curve(events, "loss")
    assert line is not None
    np.testing.assert_array_equal(line.step, np.arange(120))
    assert line.value[59:61].tolist() == [1_059.0, 2_000.0]


def test_a_second_file_that_goes_on_where_the_first_ended() -> None:
    events = table(first=(list(range(100)), 1_000), second=(list(range(100, 120)), 2_000))
    assert facts(events) == {}
    line = curve(events, "loss")
    assert line is not None
    assert len(line) == 120


def test_a_start_from_nothing_or_a_short_second_try_stays_apart() -> None:
    again = table(first=(list(range(100)), 1_000), second=(list(range(30)), 2_000))
    assert facts(again)["run.restart_step"] == 0
    short = table(first=(list(range(100)), 1_000), second=(list(range(60, 70)), 2_000))
    assert facts(short)["run.restarts"] == 1
    for events in (again, short):
        line = curve(events, "loss")
        assert line is not None
        assert (len(line), line.source) == (100, FIRST)


def test_steps_counted_anew_in_every_epoch_are_no_restart() -> None:
    assert facts(table(first=([*range(50)] * 4, 1_000))) == {}


def test_points_out_of_order_are_no_restart() -> None:
    steps = [*range(40), 38, *range(40, 80), 77, 78, *range(80, 90)]
    assert facts(table(first=(steps, 1_000))) == {}


def test_files_written_side_by_side_are_two_curves() -> None:
    events = table(first=(list(range(100)), 1_000), second=(list(range(60, 160)), 1_050))
    assert facts(events) == {}
    line = curve(events, "loss")
    assert line is not None
    assert len(line) == 100


def test_other_files_are_not_joined() -> None:
    events = table(**{"a/train_1.csv": (list(range(50)), 1_000), "a/train_2.csv": (list(range(30, 80)), 2_000)})
    assert facts(events) == {}
    line = curve(events, "loss")
    assert line is not None
    assert len(line) == 50

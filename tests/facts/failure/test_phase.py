"""The phase of a failure on ranks that never print a step."""

from __future__ import annotations

import pytest

from rca.events import EventBuilder, EventTable
from rca.facts.failure.chronology import first


def run(*, restarted: bool) -> EventTable:
    steps = EventBuilder("rank_0.log", rank=0)
    for step in range(1, 6):
        steps.add(kind="metric", name="loss", line=step, step=step, value=2.0, time=step * 10_000_000)
    other = EventBuilder("rank_5.log", rank=5)
    began = 60_000_000 if restarted else 1_000_000
    other.add(kind="log", name="nccl.init", line=1, time=began, phase="startup", role="benign", severity="info")
    other.add(
        kind="exception", name="ValueError", line=2, time=70_000_000, phase="startup", text="no", attrs={"frames": []}
    )
    return EventTable.from_parts([steps.build(), other.build()], text_sources=2)


@pytest.mark.parametrize(("restarted", "phase"), [(False, "train"), (True, "startup")])
def test_steps_of_another_rank_since_the_start_are_training(restarted: bool, phase: str) -> None:
    found = {fact.name: fact.value for fact in first(run(restarted=restarted))}
    assert found["failure.phase"] == phase

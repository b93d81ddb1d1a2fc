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


@pytest.mark.parametrize(("later_steps", "phase"), [(0, "save"), (3, "train")])
def test_an_exit_belongs_to_what_the_source_did_last(later_steps: int, phase: str) -> None:
    log = EventBuilder("job.log")
    for step in range(1, 6):
        log.add(kind="metric", name="loss", line=step, step=step, value=2.0)
    log.add(kind="log", name="checkpoint.save_began", line=6, phase="save", role="benign", severity="info")
    for step in range(7, 7 + later_steps):
        log.add(kind="metric", name="loss", line=step, step=step, value=2.0)
    log.add(kind="process", name="process.exit", line=20, value=-9.0, severity="error", attrs={"signal": 9})
    found = {fact.name: fact.value for fact in first(EventTable.from_parts([log.build()], text_sources=1))}
    assert found["failure.phase"] == phase

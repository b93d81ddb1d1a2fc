"""Attempts of one job that fail at the same place."""

from __future__ import annotations

from rca.events import EventBuilder, EventTable
from rca.facts.failure.attempts import attempts


def table(*failures: tuple[str, int, int | None]) -> EventTable:
    parts = []
    for source, step, rank in failures:
        out = EventBuilder(source)
        out.add(
            kind="exception", name="builtins.ValueError", step=step, rank=rank, severity="error", line=1, text="nan"
        )
        parts.append(out.build())
    return EventTable.from_parts(parts, text_sources=1)


def value(*failures: tuple[str, int, int | None]) -> int | None:
    return next((fact.value for fact in attempts(table(*failures)) if fact.name == "failure.same_step_again"), None)  # type: ignore[return-value]


def test_the_same_rank_at_the_same_step() -> None:
    assert value(("a/log.txt", 812, 3), ("b/log.txt", 812, 3)) == 2
    assert value(("job_attempt1.log", 812, None), ("job_attempt2.log", 812, None), ("job_attempt3.log", 812, None)) == 3


def test_what_is_no_second_attempt() -> None:
    assert value(("rank0.log", 812, 0), ("rank1.log", 812, 1)) is None
    assert value(("a.log", 812, 3), ("b.log", 640, 3)) is None
    assert value(("train.log", 812, None), ("errors.txt", 812, None)) is None

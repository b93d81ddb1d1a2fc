"""Timelines of runs with very many ranks."""

from __future__ import annotations

from rca.collect.timeline import EACH, SHOWN, timeline
from rca.events import EventBuilder, EventTable


def cascade(ranks: int) -> tuple[EventTable, int]:
    """Rank 7 fails; all others lose it within ten minutes, some of them earlier by the clock of their node."""
    parts = []
    for rank in range(ranks):
        builder = EventBuilder(f"rank_{rank}.log", rank=rank)
        own = rank == 7
        builder.add(
            kind="log", name="cuda.oom" if own else "nccl.remote_error", line=1, severity="fatal",
            time=1_000_000_000 if own else 999_900_000 + rank * 600_000, role="initiating" if own else "cascade",
            text=f"words of rank {rank}",
        )  # fmt: skip
        parts.append(builder.build())
    events = EventTable.from_parts(parts, text_sources=ranks)
    return events, events.named("cuda.oom")[0].event_id


def test_what_all_ranks_say_takes_few_rows_and_is_counted() -> None:
    events, failed = cascade(2000)
    rows = timeline(events, failure_event=failed)
    echoes = [row for row in rows if row.name == "nccl.remote_error"]
    assert [row.name for row in rows].count("cuda.oom") == 1
    assert len(echoes) == EACH
    assert sum(row.count for row in echoes) == 1999
    assert [row.rank for row in echoes[:3]] == [0, 1, 2]
    assert echoes[-1].rank == 1999


def test_short_timelines_show_every_rank() -> None:
    events, failed = cascade(SHOWN)
    assert len(timeline(events, failure_event=failed)) == SHOWN

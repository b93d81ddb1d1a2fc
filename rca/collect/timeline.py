"""The last events that matter, in order, with repeats over ranks folded into one row."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from rca.collect.evidence import iso
from rca.diagnosis import TimelineEntry
from rca.events import Event, EventTable

SHOWN = 300
"""Rows kept: the report stays readable and small."""
EACH = 8
"""Rows of one message kept in a longer timeline; thousands of ranks lose their peers in the same words."""
_KINDS = frozenset({"log", "exception", "process"})


def timeline(events: EventTable, *, failure_event: int | None) -> tuple[TimelineEntry, ...]:
    """Return what was said and what happened, oldest first; `failure_event` is the zero of the relative times."""
    zero = events.get(failure_event).time if failure_event is not None else None
    folded: list[tuple[Event, int]] = []
    for event in _telling(events):
        if folded and _same(folded[-1][0], event):
            folded[-1] = (folded[-1][0], folded[-1][1] + 1)
        else:
            folded.append((event, 1))
    if len(folded) > SHOWN:
        folded = _over_ranks(folded, failure_event)
    return tuple(_entry(event, count, zero) for event, count in _around(folded, failure_event))


def _over_ranks(rows: list[tuple[Event, int]], failure_event: int | None) -> list[tuple[Event, int]]:
    """Keep the first rows of each message, the first failure, and the last row with the count of all in between."""
    places: dict[tuple[str, str], list[int]] = {}
    for index, (event, _) in enumerate(rows):
        places.setdefault((event.kind, event.name), []).append(index)
    counts = {index: rows[index][1] for index in range(len(rows))}
    for found in places.values():
        between = [index for index in found[EACH - 1 : -1] if rows[index][0].event_id != failure_event]
        counts[found[-1]] += sum(counts.pop(index) for index in between)
    return [(rows[index][0], count) for index, count in sorted(counts.items())]


def _telling(events: EventTable) -> Iterable[Event]:
    for event in events.events:
        if event.kind in _KINDS and not event.name.startswith("inline."):
            yield event


def _same(first: Event, second: Event) -> bool:
    return (
        first.name == second.name
        and first.kind == second.kind
        and first.source == second.source
        and first.text[:120] == second.text[:120]
    )


def _around(rows: list[tuple[Event, int]], failure_event: int | None) -> list[tuple[Event, int]]:
    """Keep the rows nearest to the failure, two thirds of them before it."""
    if len(rows) <= SHOWN:
        return rows
    at = len(rows) if failure_event is None else next(
        (index for index, (event, _) in enumerate(rows) if event.event_id >= failure_event), len(rows)
    )  # fmt: skip
    start = max(0, min(at - SHOWN * 2 // 3, len(rows) - SHOWN))
    return rows[start : start + SHOWN]


def _entry(event: Event, count: int, zero: int | None) -> TimelineEntry:
    key = f"{event.source}\0{event.line}\0{event.name}\0{event.event_id}"
    return TimelineEntry(
        id="tl-" + hashlib.sha256(key.encode()).hexdigest()[:10],
        time=iso(event.time),
        relative_s=None if zero is None or event.time is None else (event.time - zero) / 1e6,
        step=event.step,
        rank=event.rank,
        host=event.host,
        kind=event.kind,
        name=event.name,
        severity=event.severity or ("error" if event.kind == "exception" else "info"),
        role=event.role,
        source=event.source,
        line=event.line,
        text=event.text[:500] or event.name,
        count=count,
    )

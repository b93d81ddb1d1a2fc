"""Times of the fastest and of the slowest rank, where a log prints only these two of every timer (Megatron)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "ranks.spread": "time of the slowest rank over that of the fastest, for the part of the step that costs most by it",
    "ranks.spread_ms": "that difference (ms a step)",
}
MIN_REPORTS = 3
"""Reports of a timer, the first (warm-up) left out."""


def spread(events: EventTable) -> Iterator[Fact]:
    """In which part of the step are the ranks furthest apart?"""
    timers: dict[str, list[tuple[float, float, int]]] = {}
    for event in events.named("megatron.work_times", kind="log"):
        least, most = event.attr("least_ms"), event.attr("most_ms")
        if isinstance(least, (int, float)) and isinstance(most, (int, float)):
            timers.setdefault(str(event.attr("timer")), []).append((float(least), float(most), event.event_id))
    middle: list[tuple[float, float, float, str, int]] = []
    for name, rows in timers.items():
        if len(rows) > MIN_REPORTS:
            least, most = (float(np.median([row[place] for row in rows[1:]])) for place in (0, 1))
            if least > 0:
                middle.append((most - least, least, most, name, rows[-1][2]))
    if not middle:
        return
    apart, least, most, name, event_id = max(middle)
    says = (
        f"{name} takes {number(least)} ms on the fastest and {number(most)} ms on the slowest rank: "
        f"{number(most / least)} times as long."
    )
    yield from emit("ranks.spread", most / least, says, unit="x", events=[event_id])
    yield from emit("ranks.spread_ms", apart, says, unit="ms", events=[event_id])


FACTS: tuple[FactFunction, ...] = (spread,)

"""Ranks that went silent long before the others failed: dead or stuck, they may be the ones that were waited for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number
from rca.facts.failure.chronology import iso
from rca.facts.failure.first_failure import chronology
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "failure.silent_rank": "rank that stopped writing well before the others failed",
    "failure.silent_lead_s": "seconds between the last word of that rank and the first failure of the others (s)",
}

SILENCE_S = 60.0
SILENCE_FACTOR = 5.0
"""A rank is silent after a minute and five times its longest own pause; watchdogs take ten minutes to speak up."""


def silence(events: EventTable) -> Iterator[Fact]:
    """Which rank went silent long before the others failed: dead or stuck, it may be the one they waited for."""
    found = chronology(events)
    times = [item.time for item in found.suspects if not math.isnan(item.time)]
    quiet = _silent_ranks(events, min(times) if times else math.nan)
    if len(quiet) != 1 or len(events.ranks) < 2:
        return
    rank, last, event_id = quiet[0]
    if any(item.lane == f"rank {rank}" for item in found.suspects):
        return
    lead = (min(times) - last) / 1e6
    says = f"Rank {rank} wrote its last line at {iso(last)}, {number(lead)} s before the first failure of the others."
    yield from emit("failure.silent_rank", rank, says, events=[event_id])
    yield from emit("failure.silent_lead_s", lead, says, unit="s", events=[event_id])


def _silent_ranks(events: EventTable, failed: float) -> list[tuple[int, float, int]]:
    if math.isnan(failed):
        return []
    table = events.table.select(["rank", "time", "event_id"]).drop_null()
    rank = table["rank"].to_numpy()
    time = np.asarray(table["time"].cast("int64").to_numpy(), dtype=float)
    event_id = table["event_id"].to_numpy()
    order = np.lexsort((time, rank))
    order = order[time[order] <= failed]
    starts = np.flatnonzero(np.diff(rank[order])) + 1
    found = []
    for own in np.split(order, starts):
        if len(own) < 5:
            continue
        pause = float(np.max(np.diff(time[own])))
        if failed - time[own[-1]] > max(SILENCE_S * 1e6, SILENCE_FACTOR * pause):
            found.append((int(rank[own[-1]]), float(time[own[-1]]), int(event_id[own[-1]])))
    return found


FACTS: tuple[FactFunction, ...] = (silence,)

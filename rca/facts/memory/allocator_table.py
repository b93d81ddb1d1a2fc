"""What printed allocator statistics say: memory that cannot be given back, and how often the cache was emptied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rca.events import EventTable
from rca.facts.emit import emit, percent
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "memory.alloc_retries": "times that the allocator emptied its cache because the device was full",
    "memory.inactive_share": "share of the reserved memory that lies in parts of split blocks and cannot be given back",
}


def table(events: EventTable) -> Iterator[Fact]:
    """How did the allocator fare, by the last statistics of each device?"""
    shown = events.named("system.memory_summary", kind="system")
    counted = [event for event in shown if isinstance(event.attr("retries"), int)]
    if counted:
        worst = max(counted, key=lambda event: int(event.attr("retries")))
        count = int(worst.attr("retries"))
        says = f"The allocator emptied its cache {count} times because the device was full."
        yield from emit("memory.alloc_retries", count, says, events=[worst.event_id])
    split = [
        event
        for event in shown
        if isinstance(event.attr("inactive_bytes"), int) and (event.attr("reserved_bytes") or 0) > 0
    ]
    if split:
        last = split[-1]
        share = min(int(last.attr("inactive_bytes")) / int(last.attr("reserved_bytes")), 1.0)
        says = f"{percent(share)} of the reserved memory lies in split blocks and cannot be given back."
        yield from emit("memory.inactive_share", round(share, 4), says, events=[last.event_id])


FACTS: tuple[FactFunction, ...] = (table,)

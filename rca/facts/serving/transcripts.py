"""Transcripts: does the model say one thing over and over?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rca.events import EventTable
from rca.facts.emit import emit
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "transcript.looped_segments": "longest row of transcribed segments that all say the same",
}


def loops(events: EventTable) -> Iterator[Fact]:
    """How many segments in a row say the same?"""
    found = events.named("transcript")
    if found:
        worst = max(found, key=lambda event: float(event.value or 0))
        length, count = int(worst.value or 0), int(worst.attr("segments") or 0)
        says = (
            f"{length} of {count} transcribed segments in a row say the same." if length > 1 else "No segment repeats."
        )
        yield from emit("transcript.looped_segments", length, says, events=[worst.event_id])


FACTS: tuple[FactFunction, ...] = (loops,)

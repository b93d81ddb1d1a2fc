"""How much of a model was taken from its checkpoint, as programs that skip what does not fit count it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rca.events import EventTable
from rca.facts.emit import emit, percent
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "weights.loaded_share": "share of the tensors of a model that came from the checkpoint, as the program counts them",
}


def loaded(events: EventTable) -> Iterator[Fact]:
    """Which share of the tensors did the last counted checkpoint give?"""
    for event in reversed(events.named("weights.load_counted", kind="log")):
        found, total = event.attr("loaded"), event.attr("total")
        if isinstance(found, int) and isinstance(total, int) and 0 <= found <= total and total > 0:
            says = f"{found} of {total} tensors were taken from the checkpoint ({percent(found / total)})."
            yield from emit("weights.loaded_share", found / total, says, events=[event.event_id])
            return


FACTS: tuple[FactFunction, ...] = (loaded,)

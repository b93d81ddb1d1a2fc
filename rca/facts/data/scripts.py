"""What the scripts of the run do, by their source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rca.events import EventTable
from rca.facts.emit import emit
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "script.no_evaluation_mode": "a script loads weights and predicts without gradients, and never calls eval()",
}


def evaluation_mode(events: EventTable) -> Iterator[Fact]:
    """Does a script that predicts put the model into evaluation mode?"""
    predicting = [
        event
        for event in events.of_kind("artifact")
        if event.name == "script.calls" and event.attr("without_gradient") and not event.attr("trains")
    ]
    lacking = [event for event in predicting if not event.attr("evaluation_mode")]
    if predicting:
        shown = lacking or predicting
        says = f"{shown[0].source} loads weights and predicts, and {'never calls' if lacking else 'calls'} eval()."
        yield from emit("script.no_evaluation_mode", bool(lacking), says, events=[event.event_id for event in shown])


FACTS: tuple[FactFunction, ...] = (evaluation_mode,)

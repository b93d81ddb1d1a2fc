"""What one step is made of, by the timers that training prints: computation, communication, the optimizer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.ranks import WAIT

CATALOGUE: Mapping[str, str] = {
    "step.communication_share": "share of the timed step that collectives take (median over the steps)",
}
_PREFIX = "timer."
_ENDINGS = ("_microstep", "_step", "_time")


def parts(events: EventTable) -> Iterator[Fact]:
    """How much of the step do collectives take?"""
    timers: dict[str, float] = {}
    shown: list[int] = []
    for name in events.metric_names:
        if name.startswith(_PREFIX):
            values = np.concatenate([series.value for series in events.all_metrics(name)])
            timers[name.removeprefix(_PREFIX)] = float(np.nanmedian(values))
            if WAIT.search(name):
                shown.append(int(events.all_metrics(name)[0].event_id[-1]))
    whole = sum(value for name, value in timers.items() if not _inside(name, timers))
    waits = sum(value for name, value in timers.items() if WAIT.search(name) and not _inside(name, _waits(timers)))
    if shown and whole > 0:
        share = min(waits / whole, 1.0)
        says = (
            f"Collectives take {number(waits)} s of the {number(whole)} s that a step is timed at ({percent(share)})."
        )
        yield from emit("step.communication_share", share, says, events=shown)


def _waits(timers: Mapping[str, float]) -> Mapping[str, float]:
    return {name: value for name, value in timers.items() if WAIT.search(name)}


def _inside(name: str, timers: Mapping[str, float]) -> bool:
    """Say whether another timer holds this one: `bwd_microstep` holds `bwd_allreduce_microstep`."""
    return any(other != name and name.startswith(f"{_stem(other)}_") for other in timers)


def _stem(name: str) -> str:
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return name


FACTS: tuple[FactFunction, ...] = (parts,)

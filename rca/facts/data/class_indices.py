"""Maps from class names to numbers: do all data sets of the run count the classes in the same way?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from rca.events import EventTable
from rca.facts.emit import emit
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "labels.index_conflict": "a class that two printed maps of the run give different numbers, in words",
}
_MOST = 20


def conflicts(events: EventTable) -> Iterator[Fact]:
    """Does any class have two numbers?

    Maps that have fewer than half of the smaller one's names in common belong to different tasks.
    """
    maps = [(event, dict(event.attr("indices") or {})) for event in events.named("labels.indices", kind="artifact")]
    for (one, first), (other, second) in combinations(maps[:_MOST], 2):
        shared = first.keys() & second.keys()
        moved = sorted(name for name in shared if first[name] != second[name])
        if moved and len(shared) >= 2 and 2 * len(shared) >= min(len(first), len(second)):
            name = moved[0]
            words = f"{name} is class {first[name]} in one data set and class {second[name]} in another"
            says = f"{words}; {len(moved)} of {len(shared)} shared classes differ."
            yield from emit("labels.index_conflict", words, says, events=[other.event_id, one.event_id])
            return


FACTS: tuple[FactFunction, ...] = (conflicts,)

"""Names that a checkpoint and a model do not share: are they the same but for what stands in front of them?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from rca.events import EventTable
from rca.facts.emit import emit
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "weights.other_prefix": "what stands in front of names on one side only, where missing and unexpected ones agree",
}
FEWEST, MOST_OF_THEM = 5, 0.8
"""Names that must agree, and their share among the fewer of both lists."""
_DEEPEST = 4


def other_prefix(events: EventTable) -> Iterator[Fact]:
    """Do the missing names stand in the file with another beginning?"""
    listed = events.named("weights.keys", kind="artifact")
    missing = {key for event in listed if event.attr("kind") == "missing" for key in event.attr("keys") or ()}
    unexpected = {key for event in listed if event.attr("kind") == "unexpected" for key in event.attr("keys") or ()}
    found = Counter([*_prefixes(unexpected, missing), *_prefixes(missing, unexpected)]).most_common(1)
    if not found:
        return
    (prefix, count), fewer = found[0], min(len(missing), len(unexpected))
    if count >= FEWEST and count >= MOST_OF_THEM * fewer:
        says = f"{count} of {fewer} names are on both sides, once with `{prefix}` in front of them and once without."
        yield from emit("weights.other_prefix", prefix, says, events=[event.event_id for event in listed])


def _prefixes(longer: set[str], shorter: set[str]) -> Iterator[str]:
    """Yield for each of the longer names what must be taken away to get one of the shorter ones."""
    for name in longer:
        parts = name.split(".")
        cut = next((at for at in range(1, min(len(parts), _DEEPEST + 1)) if ".".join(parts[at:]) in shorter), None)
        if cut is not None:
            yield ".".join(parts[:cut]) + "."


FACTS: tuple[FactFunction, ...] = (other_prefix,)

"""Inputs and labels that a program shows side by side: do their names belong together?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rca.events import EventTable
from rca.facts.emit import emit
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "samples.pairs_differ_share": "share of shown pairs of input and label whose file names have no number in common",
}
_NUMBER = re.compile(r"\d+")
_FEWEST = 3


def shown_pairs(events: EventTable) -> Iterator[Fact]:
    """How many of the shown pairs name two different samples?"""
    pairs: list[tuple[str, str, int]] = []
    for event in events.named("data.pair_shown", kind="log"):
        one, other = _stem(str(event.attr("input"))), _stem(str(event.attr("label")))
        if _NUMBER.search(one) and _NUMBER.search(other):
            pairs.append((one, other, event.event_id))
    if len(pairs) < _FEWEST:
        return
    apart = [pair for pair in pairs if not _numbers(pair[0]) & _numbers(pair[1])]
    first = f": {apart[0][0]} beside {apart[0][1]}" if apart else ""
    says = f"{len(apart)} of {len(pairs)} shown pairs of input and label have no number in common{first}."
    shown = [event for *_names, event in (apart or pairs)[:3]]
    yield from emit("samples.pairs_differ_share", len(apart) / len(pairs), says, events=shown)


def _stem(path: str) -> str:
    return path.rsplit("/", 1)[-1].rpartition(".")[0]


def _numbers(stem: str) -> frozenset[int]:
    return frozenset(int(found) for found in _NUMBER.findall(stem[:120]))


FACTS: tuple[FactFunction, ...] = (shown_pairs,)

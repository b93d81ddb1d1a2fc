"""What should differ and does not: results of two models that agree in every digit, or outputs said to be identical."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rca.events import EventTable
from rca.facts.emit import emit, number
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "quality.unchanged": "two models, such as with and without an adapter, give the same results in every digit",
}
_MADE = re.compile(
    r"adapter|lora|tuned|merged|\bsft\b|\bdpo\b|\bafter\b|checkpoint|quanti[sz]|int[48]|with\b(?!out)", re.I
)
_ORIGINAL = re.compile(r"\bbase\b|original|\bbefore\b|pre-?trained|untrained|without|reference|vanilla", re.I)
_FEWEST = 3
"""Results that must agree; one or two may do so by chance."""


def unchanged(events: EventTable) -> Iterator[Fact]:
    """Do all results of a listing come again to the last digit, or does a comparison say that nothing differs?"""
    said = [
        event
        for event in events.named("quality.identical_outputs", kind="log")
        if event.attr("same") == event.attr("all")
    ]
    if said:
        says = f"A comparison finds no difference at all: {said[0].text.strip()[:120]}"
        yield from emit("quality.unchanged", True, says.rstrip(".") + ".", events=[event.event_id for event in said])
        return
    listings: dict[tuple[str, int], dict[str, tuple[float, int]]] = {}
    for name in events.metric_names:
        if name.startswith("listed."):
            for series in events.all_metrics(name):
                for value, event_id in zip(series.value, series.event_id, strict=True):
                    place = (series.source, int(events.get(int(event_id)).attr("listing", 0)))
                    listings.setdefault(place, {})[name] = (float(value), int(event_id))
    told = [rows for rows in listings.values() if len(rows) >= _FEWEST]
    pairs = [
        (one, other)
        for place, one in enumerate(told)
        for other in told[place + 1 :]
        if one.keys() == other.keys() and _of_two_models(_heading(one, events), _heading(other, events))
    ]
    if pairs:
        same = [(one, other) for one, other in pairs if all(one[name][0] == other[name][0] for name in one)]
        one, other = (same or pairs)[0]
        differ = [name for name in one if one[name][0] != other[name][0]]
        says = (
            f"All {len(one)} results of two listings agree in every digit."
            if same
            else f"{len(differ)} of {len(one)} results differ, such as {differ[0].removeprefix('listed.')}: "
            f"{number(one[differ[0]][0])} and {number(other[differ[0]][0])}."
        )
        shown = [event for rows in (one, other) for _value, event in list(rows.values())[:2]]
        yield from emit("quality.unchanged", bool(same) and len(same) == len(pairs), says, events=shown)


def _heading(rows: Mapping[str, tuple[float, int]], events: EventTable) -> str:
    return str(events.get(next(iter(rows.values()))[1]).attr("heading", ""))


def _of_two_models(one: str, other: str) -> bool:
    """Say whether the headings name an original and what was made of it; a summary repeats the results of one model."""
    made = [_MADE.search(text) is not None for text in (one, other)]
    return made[0] != made[1] and any(_ORIGINAL.search(text) for text in (one, other))


FACTS: tuple[FactFunction, ...] = (unchanged,)

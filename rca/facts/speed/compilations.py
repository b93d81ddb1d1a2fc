"""How often compiled functions were compiled again, as torch.compile reports it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from rca.events import EventTable
from rca.facts.emit import emit
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "compile.recompilations": "times that the function compiled again most often was compiled again, in one process",
}


def recompilations(events: EventTable) -> Iterator[Fact]:
    """Which function was compiled again most often?"""
    counts: Counter[tuple[str, str, int | None]] = Counter()
    shown: dict[tuple[str, str, int | None], list[int]] = {}
    for event in events.named("dynamo.recompiling", kind="log"):
        key = str(event.attr("function")), event.source, event.rank
        counts[key] += 1
        shown.setdefault(key, []).append(event.event_id)
    for key, count in counts.most_common(1):
        times = "once" if count == 1 else f"{count} times"
        yield from emit("compile.recompilations", count, f"{key[0]} was compiled again {times}.", events=shown[key])


FACTS: tuple[FactFunction, ...] = (recompilations,)

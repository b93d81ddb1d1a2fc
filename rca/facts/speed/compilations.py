"""How often compiled functions were compiled again, as torch.compile reports it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "compile.recompilations": "times that the function compiled again most often was compiled again, in one process",
    "compile.graphs": "graphs that torch.compile made, as the run states at its end",
    "compile.share": "share of the time of all timed steps that compilations took, as the run states it",
    "compile.first_length_ratio": "step with a new sequence length over one with a known length (x)",
}
_FEWEST = 5
"""Steps of each kind."""


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


def stated(events: EventTable) -> Iterator[Fact]:
    """How many graphs were compiled, and how much of the time of the steps did that take?"""
    graphs = max(events.named("dynamo.graphs", kind="log"), key=lambda event: int(event.attr("graphs")), default=None)
    if graphs is not None:
        count = int(graphs.attr("graphs"))
        yield from emit("compile.graphs", count, f"{count} graphs were compiled.", events=[graphs.event_id])
    total = events.named("dynamo.compile_total", kind="log")
    times = events.metric("step_time")
    if total and times is not None and len(times) >= _FEWEST:
        # Every step is timed where the steps follow each other one by one.
        steps = times.position
        every = float(np.median(np.diff(steps))) if np.isfinite(steps).all() else 1.0
        spent, whole = float(total[-1].attr("seconds")), float(np.nansum(times.value)) * max(every, 1.0)
        if whole > 0:
            share = min(spent / whole, 1.0)
            says = f"Compilations took {number(spent)} s of the {number(whole)} s of the steps ({percent(share)})."
            yield from emit("compile.share", share, says, events=[total[-1].event_id])


def first_lengths(events: EventTable) -> Iterator[Fact]:
    """Does a step take much longer where its sequence length is new?"""
    times, lengths = events.metric("step_time"), events.metric("sequence_length")
    if times is None or lengths is None or times.source != lengths.source or len(times) != len(lengths):
        return
    _, first = np.unique(lengths.value, return_index=True)
    new = np.zeros(len(lengths), dtype=bool)
    new[first] = True
    new[0] = False
    known = ~new
    known[0] = False
    if np.count_nonzero(new) < _FEWEST or np.count_nonzero(known) < _FEWEST:
        return
    late, usual = float(np.median(times.value[new])), float(np.median(times.value[known]))
    # Longer sequences take longer, and the longest are those that come once.
    longer = float(np.median(lengths.value[new]) / np.median(lengths.value[known]))
    if usual > 0 and longer > 0:
        says = f"A step with a new sequence length takes {number(late)} s, one with a known length {number(usual)} s."
        shown = times.event_id[np.flatnonzero(new)[:2]]
        yield from emit("compile.first_length_ratio", late / usual / max(longer, 1.0), says, unit="x", events=shown)


FACTS: tuple[FactFunction, ...] = (recompilations, stated, first_lengths)

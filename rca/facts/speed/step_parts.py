"""What one step is made of, by the timers that training prints: computation, communication, the optimizer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.speed.ranks import WAIT

CATALOGUE: Mapping[str, str] = {
    "step.communication_share": "share of the timed step that collectives take (median over the steps)",
}
_PREFIX = "timer."
_ENDINGS = ("_microstep", "_step", "_time")
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
_WHOLE = re.compile(r"(?:^|[/._ -])(?:total|step|iter(?:ation)?|batch|all|wall|elapsed)(?:$|[/._ -])")
_LOADING = re.compile(
    r"(?:^|[/._ -])(?:data|(?:data)?load(?:er|ing)?|fetch(?:ing)?|input|read(?:ing)?|decod(?:e|ing)|augment\w*|"
    r"next_?batch|collate|io)(?:$|[/._ -])"
)
_FEWEST = 5
_ADDS_UP = 0.05
"""Columns are the parts of another one when they add up to it to a twentieth: rounding and the loop itself."""


class _Times(NamedTuple):
    value: npt.NDArray[np.float64]
    event_id: npt.NDArray[np.int64]


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


def table_of_parts(events: EventTable) -> Iterator[Fact]:
    """Where a table times the parts of a step beside the whole: which share takes loading, which the collectives?

    Of several runs, as one with one device and one with eight, the one that loses most speaks.
    """
    largest: dict[str, tuple[float, str, list[int]]] = {}
    for timed in _timed(events).values():
        found = _whole_and_parts(timed)
        if found is None:
            continue
        whole, parts = found
        total = float(np.sum(timed[whole].value))
        for fact, pattern, words in (
            ("step.data_share", _LOADING, "Waiting for data"),
            ("step.communication_share", WAIT, "Collectives"),
        ):
            named = [name for name in parts if pattern.search(name)]
            share = min(float(sum(np.sum(timed[name].value) for name in named)) / total, 1.0)
            if named and share >= largest.get(fact, (0.0,))[0]:
                steps = len(timed[whole].value)
                columns = ", ".join(item.removeprefix("table.") for item in named)
                says = f"{words} ({columns}) takes {percent(share)} of the {steps} timed steps."
                largest[fact] = share, says, [int(timed[name].event_id[-1]) for name in named]
    for fact, (share, says, shown) in largest.items():
        yield from emit(fact, share, says, events=shown)


def _timed(events: EventTable) -> dict[tuple[str, int | None], dict[str, _Times]]:
    """Return the metrics of each source that are times, by name, in seconds, without the first point (warm-up)."""
    found: dict[tuple[str, int | None], dict[str, _Times]] = {}
    for name in events.metric_names:
        for series in events.all_metrics(name):
            factor = _UNITS.get(series.unit)
            if factor is not None and len(series) > _FEWEST and (series.value >= 0).all():
                later = _Times(series.value[1:] * factor, series.event_id[1:])
                found.setdefault((series.source, series.rank), {})[name] = later
    return found


def _whole_and_parts(timed: Mapping[str, _Times]) -> tuple[str, list[str]] | None:
    """Return the column that others add up to, and those."""
    for whole, series in timed.items():
        parts = [name for name, other in timed.items() if name != whole and len(other.value) == len(series.value)]
        if len(parts) < 2 or not _WHOLE.search(whole) or not (series.value > 0).all():
            continue
        added = np.sum([timed[name].value for name in parts], axis=0)
        if float(np.median(np.abs(added / series.value - 1))) <= _ADDS_UP:
            return whole, parts
    return None


def _waits(timers: Mapping[str, float]) -> Mapping[str, float]:
    return {name: value for name, value in timers.items() if WAIT.search(name)}


def _inside(name: str, timers: Mapping[str, float]) -> bool:
    """Say whether another timer holds this one: `bwd_microstep` holds `bwd_allreduce_microstep`."""
    return any(other != name and name.startswith(f"{_stem(other)}_") for other in timers)


def _stem(name: str) -> str:
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return name


FACTS: tuple[FactFunction, ...] = (parts, table_of_parts)

"""Runs of one job on more and on fewer devices: how much of the added devices becomes speed?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rca.events import Event, EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "scaling.efficiency": "speed-up of the run with most devices over that with fewest, over the ratio of the devices",
    "scaling.speedup": "work a second of the run with most devices over that of the run with fewest (x)",
    "scaling.devices": "devices of the run with most of them",
}
_WORDS = {"one": 1, "single": 1, "two": 2, "dual": 2, "three": 3, "four": 4, "eight": 8, "sixteen": 16}
_FILE = re.compile(
    rf"(?:^|[^a-z0-9])(?:(?P<n>\d{{1,4}}|{'|'.join(_WORDS)})[ _-]?(?:x[ _-]?)?(?:gpus?|cards?|devices?|procs?|ranks?)"
    r"|(?:n?gpus?|world|np|ws)[ _-]?(?P<after>\d{1,4}))(?:[^a-z0-9]|$)"
)
_COUNTS = ("gpus", "num_gpus", "n_gpus", "n_gpu", "world_size", "devices", "num_devices", "nproc", "ranks", "num_ranks")
_FEWEST = 3
_PLANS = ("steps_per_epoch", "max_steps")
_SAME = 0.1
"""Plans within a tenth are equal: the last batch of an epoch may be cut or filled."""


class _Run(NamedTuple):
    devices: int
    seconds: float
    plan: float | None
    """Steps that `seconds` is multiplied by; None where the seconds are those of an epoch."""
    epoch: bool
    events: tuple[int, ...]


def scaling(events: EventTable) -> Iterator[Fact]:
    """How much faster is the job with more devices?"""
    runs = _runs(events)
    pairs = [(few, many) for few in runs for many in runs if few.devices < many.devices and few.epoch == many.epoch]
    if not pairs:
        yield from _sweep(events)
        return
    few, many = max(pairs, key=lambda pair: pair[1].devices / pair[0].devices)
    ratio = many.devices / few.devices
    if few.epoch:
        speedup, what = few.seconds / many.seconds, "epoch"
    elif few.plan and many.plan and abs(few.plan / many.plan - 1) > _SAME:
        speedup, what = few.seconds * few.plan / (many.seconds * many.plan), "step"
    else:
        # With as many steps each device is taken to work on a batch of its own, the usual case and the kinder one.
        speedup, what = ratio * few.seconds / many.seconds, "step"
    efficiency = speedup / ratio
    took = f"{number(few.seconds)} s on {few.devices} device(s) and {number(many.seconds)} s on {many.devices}"
    gained = f"{number(round(speedup, 2))} times the speed, {percent(efficiency)} of what the devices could give"
    says = f"{'An' if few.epoch else 'A'} {what} takes {took}: {gained}."
    seen = [*few.events, *many.events]
    yield from emit("scaling.efficiency", round(efficiency, 4), says, events=seen)
    yield from emit("scaling.speedup", round(speedup, 4), says, unit="x", events=seen)
    yield from emit("scaling.devices", many.devices, says, events=seen)


def _sweep(events: EventTable) -> Iterator[Fact]:
    """Read a benchmark that gives the speed for several numbers of devices, in lines or in a table."""
    told: dict[int, list[tuple[float, int]]] = {}
    for event in events.named("scaling.throughput", kind="log"):
        count, value = event.attr("devices") or event.attr("count"), event.attr("value")
        if isinstance(count, (int, float)) and isinstance(value, (int, float)):
            told.setdefault(int(count), []).append((float(value), event.event_id))
    for counts in (series for name in _COUNTS for series in events.all_metrics(name)):
        for speeds in events.all_metrics("throughput"):
            if speeds.source == counts.source and len(speeds) == len(counts):
                for count, value, event_id in zip(counts.value, speeds.value, speeds.event_id, strict=True):
                    told.setdefault(int(count), []).append((float(value), int(event_id)))
    for count, value, row in () if told else _under_headings(events):
        told.setdefault(count, []).append((value, row))
    speed = {count: float(np.median([value for value, _event in rows])) for count, rows in told.items() if count > 0}
    if len(speed) < 2 or not speed[min(speed)] > 0:
        return
    few, many = min(speed), max(speed)
    speedup = speed[many] / speed[few]
    efficiency = speedup * few / many
    says = f"With {many} devices the speed is {number(speed[many])}, with {few} it is {number(speed[few])}: "
    says += f"{percent(efficiency)} of what the devices could give."
    seen = [told[few][-1][1], told[many][-1][1]]
    yield from emit("scaling.efficiency", round(efficiency, 4), says, events=seen)
    yield from emit("scaling.speedup", round(speedup, 4), says, unit="x", events=seen)
    yield from emit("scaling.devices", many, says, events=seen)


def _under_headings(events: EventTable) -> Iterator[tuple[int, float, int]]:
    """Yield devices, speed and event of each speed that is printed below the heading of a number of devices."""
    headings: dict[str, list[tuple[int, int]]] = {}
    for event in events.named("scaling.heading", kind="log"):
        if event.line is not None and isinstance(count := event.attr("devices"), (int, float)):
            headings.setdefault(event.source, []).append((event.line, int(count)))
    for series in events.all_metrics("throughput") if headings else ():
        sections = sorted(headings.get(series.source, ()))
        for value, event_id in zip(series.value, series.event_id, strict=True):
            line = events.get(int(event_id)).line or 0
            above = [count for start, count in sections if start < line]
            if above:
                yield above[-1], float(value), int(event_id)


def _runs(events: EventTable) -> list[_Run]:
    plans: dict[str, float] = {}
    for key in reversed(_PLANS):
        for event in events.of_kind("config"):
            if event.name == key and event.value:
                plans[event.source] = float(event.value)
    found: list[_Run] = []
    epochs: dict[str, list[tuple[float, int]]] = {}
    for event in events.named("run.epoch_time", kind="log"):
        if isinstance(seconds := event.attr("seconds") or event.attr("taken"), (int, float)) and seconds > 0:
            epochs.setdefault(event.source, []).append((float(seconds), event.event_id))
    steps = {
        series.source: series
        for series in events.all_metrics("step_time")
        if len(series) >= _FEWEST and series.rank in {None, 0} and series.unit in {"", "s"}
    }
    for source, count in _devices(events, sorted(epochs.keys() | steps.keys())).items():
        if source in epochs:
            rows = epochs[source]
            middle = float(np.median([seconds for seconds, _event in rows]))
            found.append(_Run(count, middle, None, True, (rows[-1][1],)))
        if source in steps:
            middle = float(np.nanmedian(steps[source].value))
            if middle > 0:
                last = int(steps[source].event_id[-1])
                found.append(_Run(count, middle, plans.get(source), False, (last,)))
    return found


def _devices(events: EventTable, sources: Sequence[str]) -> dict[str, int]:
    """Return the devices of each source: as its launch or its settings say, else as its file is called."""
    found: dict[str, int] = {}
    for event in events.named("launch.devices", kind="log"):
        told = _told(event)
        if told:
            found[event.source] = max(found.get(event.source, 0), told)
    for event in events.of_kind("config"):
        stated = event.value if event.name == "world_size" else None
        if stated and math.isfinite(stated) and event.source not in found:
            found[event.source] = int(stated)
    for source in sources:
        match = _FILE.search(source.lower()) if source not in found else None
        if match is not None:
            word = match["n"] or match["after"]
            found[source] = _WORDS.get(word) or int(word)
    return {source: count for source, count in found.items() if source in sources and 1 <= count <= 4096}


def _told(event: Event) -> int:
    """Return how many devices a launch line names, 0 for none."""
    if (listed := event.attr("listed")) is not None:
        return len(str(listed).split(","))
    if isinstance(index := event.attr("index"), (int, float)):
        return int(index) + 1
    told = (event.attr(name) for name in ("count", "procs", "state", "words"))
    return next((int(value) for value in told if isinstance(value, (int, float))), 0)


FACTS: tuple[FactFunction, ...] = (scaling,)

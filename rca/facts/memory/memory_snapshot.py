"""What a memory snapshot shows: where the memory in use was asked for, what lies idle in pieces, what keeps growing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rca.events import Event, EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.memory.allocator_message import GIB
from rca.facts.memory.device_memory import CORRELATION, GROWTH
from rca.facts.robust import spearman

CATALOGUE: Mapping[str, str] = {
    "memory.snapshot_gib": "device memory in use when a memory snapshot was taken (GiB)",
    "memory.snapshot_reserved_gib": "device memory that the allocator had reserved then (GiB)",
    "memory.snapshot_peak_gib": "largest device memory in use over the history of the snapshot (GiB)",
    "memory.snapshot_refused": "allocations that were refused in the history of the snapshot",
    "memory.largest_free_gib": "largest free block that the allocator held when the snapshot was taken (GiB)",
    "memory.pieces": "a refused allocation would have fitted into what lay idle, but into no one piece of it",
    "memory.top_place": "place in the program that asked for most of the memory in use",
    "memory.top_share": "share of the memory in use that was asked for there",
    "memory.floor_rises": "lowest use in each twentieth of the history rises by 20 % or more, rank correlation > 0.8",
    "memory.floor_growth_gib": "rise of the lowest use from the first to the last twentieth of the history (GiB)",
    "memory.growing_place": "place that allocated all along the history what was never freed",
    "memory.growing_gib": "memory held by what was allocated there (GiB)",
}


def _snapshots(events: EventTable) -> list[Event]:
    return [event for event in events.named("system.memory_summary", kind="system") if event.attr("places") is not None]


def state(events: EventTable) -> Iterator[Fact]:
    """How much was in use, who had asked for it, and was what lay idle in pieces?"""
    found = _snapshots(events)
    if not found:
        return
    fullest = max(found, key=lambda event: _bytes(event, "reserved_bytes"))
    seen = [fullest.event_id]
    used, reserved = _bytes(fullest, "active_bytes"), _bytes(fullest, "reserved_bytes")
    largest = _bytes(fullest, "largest_free_bytes")
    for name, value, words in (
        ("memory.snapshot_gib", used, "The memory snapshot shows {} in use."),
        ("memory.snapshot_reserved_gib", reserved, "The allocator had reserved {}."),
        ("memory.largest_free_gib", largest, "The largest free block was {}."),
        ("memory.snapshot_peak_gib", _bytes(fullest, "active_peak_bytes"), "At most {} were in use in its history."),
    ):
        if value or not name.endswith("peak_gib"):
            yield from emit(name, value / GIB, words.format(_gib(value)), unit="GiB", events=seen)
    refused = events.named("memory.refused", kind="system")
    if any(event.attr("history") for event in found):
        says = f"{len(refused)} allocations were refused in the history of the snapshot."
        yield from emit("memory.snapshot_refused", len(refused), says, events=[event.event_id for event in refused])
    yield from _pieces(found, refused)
    yield from _top(fullest, used)


def _pieces(found: Sequence[Event], refused: Sequence[Event]) -> Iterator[Fact]:
    """A snapshot shows its free blocks as they were at its end, so only the last refusal of a device is compared."""
    last = {event.attr("gpu"): event for event in refused}
    for snapshot in found:
        event = last.get(snapshot.attr("device"))
        if event is None or event.source != snapshot.source:
            continue
        tried, idle = _bytes(event, "tried_bytes"), _bytes(event, "reserved_unallocated_bytes")
        largest = _bytes(snapshot, "largest_free_bytes")
        says = f"{_gib(tried)} were refused; {_gib(idle)} lay idle, the largest piece of it was {_gib(largest)}."
        yield from emit("memory.pieces", idle >= tried > largest, says, events=[event.event_id, snapshot.event_id])
        return


def _top(snapshot: Event, used: int) -> Iterator[Fact]:
    places = [place for place in snapshot.attr("places") if isinstance(place, dict)]
    if places and used:
        size, where = int(places[0].get("bytes", 0)), str(places[0].get("where", ""))
        says = f"{percent(size / used)} of the memory in use ({_gib(size)}) was asked for at {where}."
        yield from emit("memory.top_place", where, says, events=[snapshot.event_id])
        yield from emit("memory.top_share", size / used, says, events=[snapshot.event_id])


def growth(events: EventTable) -> Iterator[Fact]:
    """Does what stays in use rise over the history?"""
    long = [event for event in _snapshots(events) if len(_floors(event)) >= 10]
    if not long:
        return
    event = max(long, key=lambda item: _floors(item)[-1] - _floors(item)[0])
    floors = np.array(_floors(event), dtype=float)
    rise = float(floors[-1] - floors[0])
    together = spearman(np.arange(len(floors), dtype=float), floors)
    # The ring may begin before the model was built, which rises once and then stays.
    late = float(floors[-1] - floors[len(floors) // 2])
    rises = rise >= GROWTH * max(float(floors[0]), 1.0) and together > CORRELATION and late > 0.25 * rise
    says = f"The lowest use went from {_gib(floors[0])} to {_gib(floors[-1])} over {event.attr('history')} actions."
    yield from emit("memory.floor_rises", rises, says, events=[event.event_id])
    yield from emit("memory.floor_growth_gib", rise / GIB, says, unit="GiB", events=[event.event_id])
    growing = event.attr("growing")
    if isinstance(growing, dict):
        size = int(growing.get("bytes", 0))
        says = f"{growing.get('blocks')} allocations made all along at {growing.get('where')} are held: {_gib(size)}."
        yield from emit("memory.growing_place", str(growing.get("where", "")), says, events=[event.event_id])
        yield from emit("memory.growing_gib", size / GIB, says, unit="GiB", events=[event.event_id])


def _floors(event: Event) -> list[int]:
    values: Any = event.attr("floor_bytes")
    return [int(value) for value in values if isinstance(value, (int, float))] if isinstance(values, list) else []


def _bytes(event: Event, name: str) -> int:
    value = event.attr(name)
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def _gib(size: float) -> str:
    return f"{number(size / GIB)} GiB" if size >= GIB / 10 else f"{number(size / 2**20)} MiB"


FACTS: tuple[FactFunction, ...] = (state, growth)

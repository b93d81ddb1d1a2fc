"""The history of a memory snapshot: what was allocated and freed, the memory in use over it, and what was refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rca.ingest.dumps.recorded_stacks import Frame, Places, frames_of, whole, words

if TYPE_CHECKING:
    import numpy.typing as npt

    Bytes = npt.NDArray[np.int64]

MAX_ENTRIES = 1_000_000
WINDOWS = 20
"""Parts of the history for which the lowest use is told: what a step gives back does not show, what stays does."""
_SPREAD = 0.6
"""Share of the windows in which a place must have allocated what is still held to be called growing."""
_MAX_REFUSED = 20
_RESERVES = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
_USES = {"alloc": 1, "free_completed": -1}


class Refused(NamedTuple):
    """One allocation that was not granted. Sizes in bytes."""

    size: int
    device_free: int | None
    in_use: int
    reserved: int
    frames: Sequence[Frame]
    entry: int
    """Position in the history."""


class History(NamedTuple):
    """What one device's history tells. Sizes in bytes."""

    entries: int
    peak: int
    floors: tuple[int, ...]
    """Lowest use in each part of the history, oldest first; empty where the history is short."""
    refused: tuple[Refused, ...]
    growing: tuple[str, int, int] | None
    """Place, bytes and number of allocations that keep being made there and are still held."""


def read_history(entries: Sequence[Any], *, in_use: int, reserved: int, places: Places) -> History:
    """Follow the history backwards from what was in use and reserved when the snapshot was taken."""
    kept = [entry for entry in entries[-MAX_ENTRIES:] if isinstance(entry, dict)]
    used = _curve(kept, _USES, in_use)
    held = _curve(kept, _RESERVES, reserved)
    refused = [
        Refused(
            size=whole(entry.get("size")) or 0,
            device_free=whole(entry.get("device_free")),
            in_use=int(used[index]),
            reserved=int(held[index]),
            frames=frames_of(entry),
            entry=index,
        )
        for index, entry in enumerate(kept)
        if entry.get("action") == "oom"
    ]
    floors = () if len(kept) < 5 * WINDOWS else tuple(int(part.min()) for part in np.array_split(used, WINDOWS))
    return History(
        entries=len(kept),
        peak=int(used.max()) if len(used) else in_use,
        floors=floors,
        refused=tuple(refused[:_MAX_REFUSED]),
        growing=_growing(kept, places),
    )


def _curve(entries: Sequence[Mapping[str, Any]], signs: Mapping[str, int], end: int) -> Bytes:
    """Return the total after each entry; the last one is `end`, so that what began before the ring counts as well."""
    change = np.fromiter(
        (signs.get(words(entry.get("action")), 0) * min(whole(entry.get("size")) or 0, 1 << 50) for entry in entries),
        dtype=np.int64,
        count=len(entries),
    )
    total = np.cumsum(change)
    return np.maximum(total + (end - (int(total[-1]) if len(total) else 0)), 0)


def _growing(entries: Sequence[Mapping[str, Any]], places: Places) -> tuple[str, int, int] | None:
    """Return the place that made the most of what is still held, if it did so all along the history."""
    live: dict[int, tuple[int, Mapping[str, Any]]] = {}
    for index, entry in enumerate(entries):
        action, address = entry.get("action"), whole(entry.get("addr"))
        if address is None:
            continue
        if action == "alloc":
            live[address] = (index, entry)
        elif action in ("free_requested", "free_completed"):
            live.pop(address, None)
    held: dict[str, tuple[int, int, set[int]]] = {}
    for index, entry in live.values():
        place = places.of(frames_of(entry))
        size, count, windows = held.get(place, (0, 0, set()))
        windows.add(index * WINDOWS // len(entries))
        held[place] = (size + (whole(entry.get("size")) or 0), count + 1, windows)
    steady = [
        (place, size, count)
        for place, (size, count, windows) in held.items()
        if place and len(entries) >= 5 * WINDOWS and len(windows) >= _SPREAD * WINDOWS
    ]
    return max(steady, key=lambda item: item[1], default=None)

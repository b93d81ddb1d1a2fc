"""Where each training process stood when the job stood still, and which of them stood apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from rca.events import Event, EventTable
from rca.facts.failure.roles import owner
from rca.facts.memo import once_per_table

WAITING = frozenset({"collective", "rendezvous"})
FOR_OTHERS = WAITING | {"backward", "device"}
"""In a backward pass and in a synchronisation with the device a process waits as well when a gradient is reduced."""
MAJORITY = 0.5
_NUMBER = re.compile(r"(?:^|[^0-9a-fx])(\d{1,5})(?=\D*$)")


class Stood(NamedTuple):
    """The last stack of one process."""

    label: str
    rank: int | None
    state: str
    operation: str | None
    frame: str | None
    """`file:line in function` of the program."""
    event: Event

    @property
    def key(self) -> tuple[str, str | None]:
        """What makes two processes do the same."""
        return self.state, self.operation


@once_per_table
def standing(events: EventTable) -> tuple[Stood, ...]:
    """Return the last stack of each training process, in the order of ranks."""
    found = [event for event in events.named("process.stack", kind="process") if event.attr("process") == "main"]
    ranks = _ranks(events, found)
    last: dict[str, Stood] = {}
    for event in found:
        rank = ranks[event.event_id]
        label = f"rank {rank}" if rank is not None else f"process {event.attr('pid') or event.source}"
        last[label] = Stood(
            label, rank, str(event.attr("state")), event.attr("operation"), frame_text(event.attr("user_frame")), event
        )
    return tuple(sorted(last.values(), key=lambda one: (one.rank is None, one.rank or 0, one.label)))


def _ranks(events: EventTable, found: Sequence[Event]) -> dict[int, int | None]:
    """Return the rank of each dump: stated, that of its process id elsewhere, or the number in the name of its file."""
    known = {event.event_id: owner(event) for event in found}
    by_pid = {
        event.attr("pid"): owner(event)
        for event in events.events
        if owner(event) is not None and isinstance(event.attr("pid"), int)
    }
    for event in found:
        if known[event.event_id] is None:
            known[event.event_id] = by_pid.get(event.attr("pid"))
    if all(rank is None for rank in known.values()):
        sources = {event.source for event in found}
        numbers = {source: _NUMBER.search(source.rsplit("/", 1)[-1]) for source in sources}
        ranks = sorted(int(number[1]) for number in numbers.values() if number is not None)
        alone = Counter(event.source for event in found).most_common(1)
        # Only a count from nought names ranks; other numbers are process ids or dates.
        if len(ranks) == len(sources) > 1 and ranks == list(range(len(ranks))) and alone[0][1] == 1:
            for event in found:
                number = numbers[event.source]
                known[event.event_id] = int(number[1]) if number is not None else None
    return known


def frame_text(frame: Any) -> str | None:
    """Return `file:line in function`; None where there is no file."""
    if not isinstance(frame, dict) or not frame.get("file"):
        return None
    return f"{str(frame['file']).rsplit('/', 1)[-1]}:{frame.get('line')} in {frame.get('function')}"


def apart(found: Sequence[Stood]) -> tuple[list[Stood], list[Stood]]:
    """Return those that do something else while the majority waits for them, and the majority; nobody where unclear."""
    waiting = [one for one in found if one.state in WAITING] or [one for one in found if one.state in FOR_OTHERS]
    others = [one for one in found if one not in waiting]
    if 0 < len(waiting) < len(others) and all(one.state == "backward" for one in others):
        return waiting, others  # the many reduce gradients, and the few went into another collective instead
    if waiting and not others:
        (key, count), *_ = Counter((one.key, one.frame) for one in waiting).most_common()
        others = [one for one in waiting if (one.key, one.frame) != key] if count > MAJORITY * len(found) else []
        waiting = [one for one in waiting if (one.key, one.frame) == key]
    if not others or not waiting or (len(others) >= len(waiting) and len(others) > 1):
        return [], []
    return others, waiting


def awaited(events: EventTable) -> Stood | None:
    """Return the one rank that all the others wait for in a collective or a rendezvous, itself in none; else None.

    A rank in another collective is part of a mismatch, and one that waits for the device may be the first to arrive.
    """
    others, waiting = apart(standing(events))
    alone = others[0] if len(others) == 1 and len(waiting) > 1 else None
    if alone is None or alone.rank is None or alone.state in FOR_OTHERS:
        return None
    return alone if all(one.state in WAITING for one in waiting) else None

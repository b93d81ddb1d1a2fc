"""The state of all collectives that flight recorders kept: the group where it began, and the ranks that it hangs on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rca.events import EventTable
from rca.facts.collectives.matching import (
    COMPLETE,
    CROSSED,
    MISMATCHES,
    NOT_COMPLETED,
    NOT_DUMPED,
    NOT_STARTED,
    Match,
    match,
)
from rca.facts.collectives.recorded_calls import Recorded, dumps, groups
from rca.facts.collectives.transfers import unmatched
from rca.facts.memo import once_per_table


@dataclass(frozen=True)
class Verdict:
    """What the dumps of all ranks say together."""

    match: Match
    """The group in which it began."""
    state: str
    blamed: tuple[int, ...]
    """Ranks on which all others wait in the end; empty where the dumps name none."""
    idle: tuple[int, ...]
    """Those of them that have nothing in flight: they are busy or stuck outside of collectives."""
    waiting: tuple[int, ...]
    """Ranks that are in a collective or transfer of any group that did not end."""
    undumped: tuple[int, ...]
    events: tuple[int, ...]
    """Recordings of the odd ranks first, then of a waiting one."""


@once_per_table
def verdict(events: EventTable) -> Verdict | None:
    """Match all groups and follow who waits for whom; None without dumps of at least two ranks.

    A rank that others miss in one group may itself wait in another: its absence follows from that. Where every missed
    rank waits somewhere, the ranks entered the collectives of two groups in different order.
    """
    dumped = {rank: event.attr("overwritten") is True for rank, event in dumps(events).items()}
    if len(dumped) < 2:
        return None
    known = groups(events)
    matches = [
        found for group in known for found in (match(group, dumped), unmatched(group, dumped)) if found is not None
    ]
    undumped = tuple(sorted({rank for found in matches for rank in found.undumped}))
    troubled = [found for found in matches if found.state != COMPLETE]
    if not troubled:
        if not matches:
            return None
        return Verdict(matches[0], COMPLETE, (), (), (), undumped, _events(matches[0], ()))
    first, blamed, state = _origin(troubled)
    open_ranks = {item.rank for group in known for item in group.by_rank.values() if _open(item)}
    waiting = tuple(sorted({rank for found in troubled for rank in found.waiting} | open_ranks))
    idle = tuple(rank for rank in blamed if rank not in open_ranks and rank in dumped)
    return Verdict(first, state, blamed, idle, waiting, undumped, _events(first, blamed))


def _open(item: Recorded) -> bool:
    return item.pending is not None


def _origin(troubled: Sequence[Match]) -> tuple[Match, tuple[int, ...], str]:
    """Return the group in which it began, the ranks that are to blame, and the state."""
    differing = [found for found in troubled if found.state in MISMATCHES]
    if differing:
        first = min(differing, key=_started)
        return first, first.odd, first.state
    named = [found for found in troubled if found.blames]
    if not named:
        first = min(troubled, key=lambda found: (_WEAKEST.index(found.state), _started(found)))
        return first, (), first.state
    held = _held(named)
    roots = [found for found in named if any(rank not in held for rank in found.blames)]
    if not roots:
        first = min(named, key=_started)
        return first, tuple(sorted({rank for found in named for rank in found.blames})), CROSSED
    first = min(roots, key=lambda found: (found.state == NOT_DUMPED, -len(found.waiting), _started(found)))
    return first, tuple(rank for rank in first.blames if rank not in held), first.state


_WEAKEST = (NOT_STARTED, NOT_COMPLETED, NOT_DUMPED)
"""States without a name to it, the more telling first."""


def _held(named: Sequence[Match]) -> Mapping[int, Match]:
    """Return the ranks that wait for somebody else in a group of their own."""
    return {rank: found for found in named for rank in found.waiting if rank not in found.blames}


def _started(found: Match) -> float:
    """When the oldest waiting rank entered it (microseconds)."""
    times = [
        item.event.attr("created_us")
        for rank, item in found.group.by_rank.items()
        if not found.waiting or rank in found.waiting
    ]
    return min((float(time) for time in times if isinstance(time, (int, float))), default=float("inf"))


def _events(found: Match, blamed: Sequence[int]) -> tuple[int, ...]:
    ranks = [*blamed, *found.odd, *found.waiting[:1], *sorted(found.group.by_rank)[:1]]
    by_rank = found.group.by_rank
    return tuple(dict.fromkeys(by_rank[rank].event.event_id for rank in ranks if rank in by_rank))

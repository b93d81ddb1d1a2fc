"""What the flight recorders of all ranks say about a collective that did not end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rca.events import EventTable
from rca.facts.collectives.matching import (
    COMPLETE,
    MISMATCHES,
    NOT_COMPLETED,
    OTHER_DTYPE,
    OTHER_OPERATION,
    OTHER_SIZE,
    ranks_of,
)
from rca.facts.collectives.recorded_calls import dumps, groups
from rca.facts.collectives.recorded_state import Verdict, verdict
from rca.facts.emit import emit, number
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "collective.dumps": "number of ranks whose flight recorder is here",
    "collective.undumped": "number of ranks that flight recorders of others list and that left no dump",
    "collective.undumped_ranks": "these ranks",
    "collective.state": "what the flight recorders of the ranks say together: not_joined | other_operation | "
    "other_size | other_dtype | not_started | not_completed | not_dumped | unmatched_transfer | crossed_groups | "
    "completed",
    "collective.dtype_mismatch": "at the same sequence number and operation ranks bring different types of elements",
    "collective.group": "process group in which it began",
    "collective.where": "place in the program of the odd rank's call, or of its last call before it stayed away",
    "collective.waiting_where": "place in the program from which the waiting ranks called the collective",
    "collective.waited_s": "time between the oldest call that is not over and the newest that any rank recorded (s)",
}


def recorders(events: EventTable) -> Iterator[Fact]:
    """How many recorders are here, and whose are missing?"""
    found = dumps(events)
    if not found:
        return
    seen = [event.event_id for _, event in sorted(found.items())]
    says = f"The flight recorders of {len(found)} ranks are here."
    yield from emit("collective.dumps", len(found), says, events=seen)
    members = {rank for group in groups(events) for rank in group.members}
    if not members:
        return
    missing = sorted(members - set(found))
    says = f"{ranks_of(missing)} left no dump.".capitalize() if missing else "Every rank of the job left a dump."
    yield from emit("collective.undumped", len(missing), says, events=seen)
    if missing:
        shown = ", ".join(map(str, missing[:16])) + (f" and {len(missing) - 16} more" if len(missing) > 16 else "")
        yield from emit("collective.undumped_ranks", shown, says, events=seen)


def matched(events: EventTable) -> Iterator[Fact]:
    """Where do the ranks part, and from where in the program were the calls made?"""
    found = verdict(events)
    if found is None:
        return
    yield from emit("collective.state", found.state, found.match.says, events=found.events)
    if found.state == COMPLETE:
        return
    yield from emit("collective.group", found.match.group.title, found.match.says, events=found.events)
    differs = found.state == OTHER_DTYPE
    if found.state in {*MISMATCHES, NOT_COMPLETED}:
        yield from emit("collective.dtype_mismatch", differs, found.match.says, events=found.events)
    yield from _places(events, found)
    yield from _waited(events, found)


def _places(events: EventTable, found: Verdict) -> Iterator[Fact]:
    call, other = found.match.call, found.match.odd_call
    place = _last_place(events, found) or (other.where if other is not None else "")
    if place:
        says = (
            f"The call of {ranks_of(found.blamed)} is at {place}." if found.blamed else f"The odd call is at {place}."
        )
        yield from emit("collective.where", place, says, events=found.events)
    if call is not None and call.where:
        says = f"The waiting ranks called {call.op} at {call.where}."
        yield from emit("collective.waiting_where", call.where, says, events=found.events)


def _last_place(events: EventTable, found: Verdict) -> str:
    """Newest call, in any group, of a rank that stayed away: the program went on from there."""
    if found.state in MISMATCHES or not found.blamed:
        return ""
    rank = found.blamed[0]
    own = [item for group in groups(events) if (item := group.by_rank.get(rank)) is not None and item.recording.seq]
    newest = max(own, key=lambda item: item.event.attr("latest_us") or 0, default=None)
    call = None if newest is None else newest.call_at(newest.last)
    return "" if call is None else call.where


def _waited(events: EventTable, found: Verdict) -> Iterator[Fact]:
    times = [
        (item.event.attr("created_us"), item.event.attr("latest_us"), item.pending)
        for group in groups(events)
        for item in group.by_rank.values()
    ]
    since = min((made for made, _, pending in times if isinstance(made, int) and pending is not None), default=None)
    newest = max((latest for _, latest, _ in times if isinstance(latest, int)), default=None)
    if since is not None and newest is not None and newest >= since:
        says = (
            f"The newest call of any rank was made {number((newest - since) / 1e6)} s after the one that is not over."
        )
        yield from emit("collective.waited_s", (newest - since) / 1e6, says, unit="s", events=found.events)


def agreement_of(found: Verdict) -> Iterator[Fact]:
    """Say in the terms of the watchdogs' messages whether the ranks are in the same collective."""
    match, seen = found.match, found.events
    if match.call is not None:
        yield from emit(
            "collective.seq", match.seq, f"It is collective #{match.seq} of {match.group.title}.", events=seen
        )
        yield from emit("collective.seq_spread", match.spread, match.says, events=seen)
    if found.state in MISMATCHES:
        yield from emit("collective.op_mismatch", found.state == OTHER_OPERATION, match.says, events=seen)
        yield from emit("collective.numel_mismatch", found.state == OTHER_SIZE, match.says, events=seen)
        if match.odd:
            yield from emit("collective.odd_ranks", ", ".join(map(str, match.odd[:16])), match.says, events=seen)
        if len(match.odd) == 1:
            yield from emit("collective.odd_rank", match.odd[0], match.says, events=seen)
    yield from emit("collective.all_equal", found.state == NOT_COMPLETED, match.says, events=seen)


def absence_of(found: Verdict) -> Iterator[Fact]:
    """State in the same terms who is missing."""
    seen = found.events
    if found.state in MISMATCHES:
        return
    says = f"{ranks_of(found.idle).capitalize()} had nothing in flight." if found.idle else "No rank was idle."
    yield from emit("collective.idle_ranks", len(found.idle), says, events=seen)
    if len(found.idle) == 1:
        yield from emit("collective.idle_rank", found.idle[0], says, events=seen)
    says = found.match.says
    yield from emit("collective.missing_count", len(found.blamed), says, events=seen)
    if found.blamed:
        shown = ", ".join(map(str, found.blamed[:16]))
        yield from emit("collective.missing_ranks", shown, says, events=seen)
        yield from emit("collective.lagging_ranks", shown, says, events=seen)


FACTS: tuple[FactFunction, ...] = (recorders, matched)

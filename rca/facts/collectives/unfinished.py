"""Collectives that did not complete: who waited where, who is the odd one, who is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rca.events import EventTable
from rca.facts.collectives.collective_reports import Wait, named_ranks, waits
from rca.facts.collectives.matching import COMPLETE
from rca.facts.collectives.recorded_collectives import absence_of, agreement_of
from rca.facts.collectives.recorded_state import Verdict, verdict
from rca.facts.collectives.standing import awaited
from rca.facts.emit import emit, number
from rca.facts.failure.progress import clock
from rca.facts.failure.roles import owner
from rca.facts.interface import Fact, FactFunction
from rca.facts.training.curves import config_number

CATALOGUE: Mapping[str, str] = {
    "collective.timeout_ranks": "number of ranks whose collective timed out",
    "collective.op": "collective that most ranks waited in, e.g. ALLREDUCE",
    "collective.odd_rank": "the one rank that waits in another collective, or at another place, than the majority",
    "collective.odd_ranks": "ranks of the minority, when the majority is clear",
    "collective.seq_spread": "difference between the largest and the smallest sequence number that ranks wait at",
    "collective.op_mismatch": "at the same sequence number ranks wait in different operations",
    "collective.numel_mismatch": "at the same sequence number and operation ranks wait with different element counts",
    "collective.idle_rank": "rank that completed everything it enqueued: it is not in a collective but stuck elsewhere",
    "collective.idle_ranks": "number of such ranks",
    "collective.missing_ranks": "ranks that reported no timeout while others of the job did",
    "collective.missing_count": "number of these ranks",
    "collective.all_equal": "every rank waits in the same collective with the same size: nobody is missing or ahead",
    "collective.lagging_ranks": "ranks named by a desync report, a monitored barrier, or the smallest sequence number",
    "collective.culprit": "the one rank that the waiting ranks point at: idle, missing, named, odd or elsewhere",
    "collective.timeout_s": "configured timeout (s)",
    "collective.ran_s": "time that the collective ran before it was given up (s)",
    "collective.spread_s": "seconds between the first and the last rank that gave up (s)",
    "collective.groups": "number of process groups with a timeout",
    "collective.seq": "sequence number that the majority waits at; 1 to 3 means the job never got going",
}

_OTHER_ECHOES = frozenset({"nccl.remote_error", "nccl.ib_completion_error", "nccl.socket_closed", "nccl.comm_aborted"})
"""A rank that says one of these was in the collective as well and lost a peer instead of its patience."""
LARGEST_JOB = 65_536
"""More ranks than that are a misread number."""
SAME_SIZE = frozenset({"ALLREDUCE", "BROADCAST", "ALLGATHER", "_ALLGATHER_BASE", "REDUCE", "REDUCE_SCATTER", "BARRIER"})
"""Operations in which all ranks must bring the same number of elements."""


def reports(events: EventTable) -> Iterator[Fact]:
    """Who timed out, in what, after how long?"""
    timed_out = [wait for wait in waits(events) if wait.timed_out]
    if not timed_out:
        return
    ranks = sorted({wait.rank for wait in timed_out})
    seen = [wait.event.event_id for wait in timed_out]
    says = f"{len(ranks)} ranks ({listing(ranks)}) gave up on a collective."
    yield from emit("collective.timeout_ranks", len(ranks), says, events=seen)
    groups = {wait.group for wait in timed_out}
    yield from emit("collective.groups", len(groups), f"Timeouts were reported in {len(groups)} process groups.")
    op, count = Counter(wait.op for wait in timed_out).most_common(1)[0]
    yield from emit("collective.op", op, f"{count} of {len(timed_out)} reports name {op}.", events=seen)
    for name, attribute, words in (
        ("collective.timeout_s", "timeout_ms", "The timeout is"),
        ("collective.ran_s", "ran_ms", "The collective ran for"),
    ):
        known = [getattr(wait, attribute) for wait in timed_out if getattr(wait, attribute) is not None]
        if known:
            says = f"{words} {number(known[0] / 1000)} s."
            yield from emit(name, known[0] / 1000, says, unit="s", events=seen[:1])
    times = [time for wait in timed_out if (time := clock(events).time(wait.event)) == time]
    if len(times) >= 2:
        spread = (max(times) - min(times)) / 1e6
        says = f"The first and the last rank gave up {number(spread)} s apart."
        yield from emit("collective.spread_s", spread, says, unit="s", events=seen)


def agreement(events: EventTable) -> Iterator[Fact]:
    """Do the ranks wait in the same collective? Flight recorders know more than the messages of the watchdogs."""
    recorded = _recorded(events)
    if recorded is not None:
        yield from agreement_of(recorded)
        return
    largest = _largest_group([wait for wait in waits(events) if wait.timed_out])
    if len(largest) < 2:
        return
    seen = [wait.event.event_id for wait in largest]
    keys = _keys(largest)
    votes = Counter(keys.values())
    (key, majority), *others = votes.most_common()
    places = "; ".join(f"{listing([r for r in keys if keys[r] == k])} at {_work(k)}" for k, _ in votes.most_common(4))
    says = f"Ranks {places}."
    if key[0] is not None:
        yield from emit("collective.seq", key[0], f"Most ranks wait at sequence number {key[0]}.", events=seen)
    known = [wait.seq for wait in largest if wait.seq is not None]
    if len(known) >= 2:
        yield from emit("collective.seq_spread", max(known) - min(known), says, events=seen)
    by_seq: dict[int | None, set[str | None]] = {}
    sizes: dict[tuple[int | None, str | None], set[int | None]] = {}
    for wait in largest:
        by_seq.setdefault(wait.seq, set()).add(wait.op)
        sizes.setdefault((wait.seq, wait.op), set()).add(wait.numel_in)
    yield from emit("collective.op_mismatch", any(len(ops) > 1 for ops in by_seq.values()), says, events=seen)
    differing = any(len(found - {None}) > 1 for (_, op), found in sizes.items() if op in SAME_SIZE)
    yield from emit("collective.numel_mismatch", differing, says, events=seen)
    odd = _odd(largest)
    if odd:
        first = [wait.event.event_id for wait in largest if wait.rank in odd]
        says = f"Rank {listing(odd)} waits at {_work(keys[odd[0]])}, the other {majority} ranks at {_work(key)}."
        yield from emit("collective.odd_ranks", listing(odd), says, events=first)
        if len(odd) == 1:
            yield from emit("collective.odd_rank", odd[0], says, events=first)
    equal = not others and not _missing(events, largest) and not _idle(events) and key[1] is not None
    says = f"All {len(keys)} ranks wait at {_work(key)}." if equal else f"The ranks do not all wait alike: {places}."
    yield from emit("collective.all_equal", equal, says, events=seen)


def _keys(largest: Sequence[Wait]) -> dict[int, tuple[int | None, str | None, int | None]]:
    return {wait.rank: (wait.seq, wait.op, wait.numel_in if wait.op in SAME_SIZE else None) for wait in largest}


def _odd(largest: Sequence[Wait]) -> list[int]:
    """Ranks that differ from a clear majority; two ranks that differ from each other have none."""
    keys = _keys(largest)
    if len(keys) < 3:
        return []
    key, votes = Counter(keys.values()).most_common(1)[0]
    return sorted(rank for rank, own in keys.items() if own != key) if votes > len(keys) / 2 else []


def absence(events: EventTable) -> Iterator[Fact]:
    """Who is not waiting: missing from the timeouts, idle, or named as lagging?"""
    recorded = _recorded(events)
    if recorded is not None:
        yield from absence_of(recorded)
        return
    found = waits(events)
    idle = _idle(events)
    if any(wait.enqueued is not None and wait.completed is not None for wait in found):
        says = f"Rank {listing([wait.rank for wait in idle])} had completed everything that it had enqueued."
        says = says if idle else "Every rank that reported its queue was waiting in a collective."
        seen = [wait.event.event_id for wait in idle]
        yield from emit("collective.idle_ranks", len(idle), says, events=seen)
        if len(idle) == 1:
            yield from emit("collective.idle_rank", idle[0].rank, says, events=seen)
    timed_out = [wait for wait in found if wait.timed_out]
    if timed_out:
        missing = _missing(events, timed_out)
        says = f"Ranks {listing(missing)} reported no timeout." if missing else "Every known rank reported a timeout."
        seen = [wait.event.event_id for wait in timed_out]
        yield from emit("collective.missing_count", len(missing), says, events=seen)
        if missing:
            yield from emit("collective.missing_ranks", listing(missing), says, events=seen)
    yield from _lagging(events, _largest_group(timed_out))


def culprit(events: EventTable) -> tuple[int, str] | None:
    """Return the one rank that the waiting ranks point at, and why; None when they point at nobody or at several."""
    recorded = _recorded(events)
    if recorded is not None and len(recorded.blamed) == 1:
        return recorded.blamed[0], recorded.match.says.rstrip(".")
    found = waits(events)
    timed_out = [wait for wait in found if wait.timed_out]
    idle = [wait.rank for wait in _idle(events)]
    if len(idle) == 1:
        return idle[0], "it had completed everything it had enqueued while the others waited"
    missing = _missing(events, timed_out) if timed_out else []
    if len(missing) == 1:
        return missing[0], "it is the only rank that did not report a timeout"
    for which, why in (("lagging", "the desync report names it"), ("missing", "it did not reach the barrier")):
        named = named_ranks(events, which)
        if named is not None and len(named[0]) == 1:
            return named[0][0], why
    odd = _odd(_largest_group(timed_out))
    if len(odd) == 1:
        return odd[0], "it waits in another collective than the majority"
    stood = awaited(events)
    if stood is None or stood.rank is None:
        return None
    return stood.rank, f"its stack is the only one that is in no collective ({stood.frame or stood.state})"


def pointing(events: EventTable) -> Iterator[Fact]:
    """Whom do the waiting ranks point at?"""
    found = culprit(events)
    if found is not None:
        recorded = _recorded(events)
        stood = awaited(events)
        seen = list(recorded.events if recorded is not None else ()) + [wait.event.event_id for wait in waits(events)]
        seen = seen or ([stood.event.event_id] if stood is not None else [])
        says = f"The waiting ranks point at rank {found[0]}: {found[1]}."
        yield from emit("collective.culprit", found[0], says, events=seen)


def _recorded(events: EventTable) -> Verdict | None:
    """Return what flight recorders say; None where there are none, or where nothing they hold is unfinished."""
    found = verdict(events)
    return None if found is None or found.state == COMPLETE else found


def _lagging(events: EventTable, largest: Sequence[Wait]) -> Iterator[Fact]:
    for which, words in (("lagging", "The desync report names"), ("missing", "The barrier was not reached by")):
        named = named_ranks(events, which)
        if named is not None:
            says = f"{words} rank {listing(named[0])}."
            yield from emit("collective.lagging_ranks", listing(named[0]), says, events=[named[1].event_id])
            return
    known = [wait for wait in largest if wait.seq is not None]
    if len(known) < 2:
        return
    low = min(wait.seq or 0 for wait in known)
    behind = [wait for wait in known if wait.seq == low]
    if len(behind) * 2 < len(known):
        says = f"Rank {listing([wait.rank for wait in behind])} waits at sequence number {low}, behind the others."
        seen = [wait.event.event_id for wait in behind]
        yield from emit("collective.lagging_ranks", listing([wait.rank for wait in behind]), says, events=seen)


def _largest_group(found: Sequence[Wait]) -> list[Wait]:
    """Return the waits of the process group that most ranks reported; sequence numbers only compare within one."""
    by_group: dict[str, list[Wait]] = {}
    for wait in found:
        by_group.setdefault(wait.group, []).append(wait)
    return max(by_group.values(), key=len, default=[])


def _idle(events: EventTable) -> list[Wait]:
    """Ranks that have nothing in flight although another rank of the same group waits: NeMo's reading of E == C."""
    found = waits(events)
    waiting = {wait.group for wait in found if _in_flight(wait)}
    idle = [wait for wait in found if _in_flight(wait) is False and wait.group in waiting and not wait.timed_out]
    others = {wait.rank for wait in found if _in_flight(wait)}
    return [wait for wait in idle if wait.rank not in others]


def _in_flight(wait: Wait) -> bool | None:
    if wait.enqueued is None or wait.completed is None:
        return None
    return wait.enqueued > wait.completed


def _missing(events: EventTable, timed_out: Sequence[Wait]) -> list[int]:
    spoke = {wait.rank for wait in timed_out}
    stated = config_number(events, "world_size")
    world = set(events.ranks) | spoke
    size = int(stated) if stated is not None and stated > 1 else max(world) + 1 if len(world) > 1 else 0
    if size <= LARGEST_JOB:
        unheard = set(range(size)) - world
        # Where most of the job left no word at all, their logs are not here, and their silence tells nothing.
        world |= unheard if len(unheard) < len(world) else set()
    echoed = {owner(event) for event in events.of_kind("log") if event.name in _OTHER_ECHOES} - {None}
    return sorted(world - spoke - echoed)


def _work(key: tuple[int | None, str | None, int | None]) -> str:
    seq, op, numel = key
    name = op or "a collective"
    name += f" #{seq}" if seq is not None else ""
    return f"{name} of {numel} elements" if numel is not None else name


def listing(ranks: Sequence[int]) -> str:
    """Write ranks the way they are quoted: `1, 3, 5`, at most sixteen of them."""
    shown = ", ".join(str(rank) for rank in ranks[:16])
    return shown if len(ranks) <= 16 else f"{shown} and {len(ranks) - 16} more"


FACTS: tuple[FactFunction, ...] = (reports, agreement, absence, pointing)

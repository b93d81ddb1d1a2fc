"""Stacks taken while a job stood still: what each rank was doing, and who was doing something else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rca.events import Event, EventTable
from rca.facts.collectives.standing import FOR_OTHERS, Stood, apart, frame_text, standing
from rca.facts.collectives.unfinished import listing
from rca.facts.emit import emit
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "stack.processes": "training processes whose stack was taken",
    "stack.state": "what most processes were doing: collective | rendezvous | data_wait | data | save | load | "
    "compile | device | network | backward | optimizer | forward | lock | queue | input | process | running",
    "stack.waiting": "most of them waited for other ranks: in a collective, to join, or in a backward pass",
    "stack.operation": "collective that most of them waited in, e.g. all_reduce",
    "stack.same": "all of them were doing the same, at the same line of the program",
    "stack.states": "what each rank was doing, in words",
    "stack.odd": "the process that did something else than the others: `rank 3` or `process 4211`",
    "stack.odd_rank": "rank of that process, where it is known",
    "stack.odd_ranks": "ranks of the minority, where there are several",
    "stack.odd_state": "what that process was doing",
    "stack.odd_frame": "line of the program at which it stood",
    "stack.op_mismatch": "ranks waited in different collectives at the same time",
    "stack.frame": "line of the program at which most of them stood",
    "stack.worker_state": "what the workers of the data loader were doing: data | idle | lock | network | input",
    "stack.worker_frame": "line of the program at which a worker of the data loader stood",
    "stack.workers": "workers of the data loader whose stack was taken",
    "stack.workers_stuck": "workers that waited for a lock or for the network while they should have made samples",
    "stack.unchanged": "a process stood at the same place in dumps taken one after the other",
}

_WORKER_WORDS = {"data": "prepare data", "idle": "have no work", "lock": "wait for a lock", "running": "run"}
_STUCK = frozenset({"lock", "network", "input", "interpreter lock", "process"})


def _words(stood: Stood) -> str:
    doing = str(stood.event.attr("doing", "runs"))
    return f"{doing} ({stood.frame})" if stood.frame else doing


def stacks(events: EventTable) -> Iterator[Fact]:
    """What did the ranks do, and who did something else?"""
    found = standing(events)
    if not found:
        return
    seen = [one.event.event_id for one in found]
    votes = Counter(one.key for one in found)
    (key, count), *_ = votes.most_common()
    leading = [one for one in found if one.key == key]
    many = f"The stacks of {len(found)} processes were" if len(found) > 1 else "The stack of one process was"
    yield from emit("stack.processes", len(found), f"{many} taken.", events=seen)
    share = f"{count} of {len(found)} processes: the" if len(found) > 1 else "The"
    says = f"{share} main thread {_words(leading[0])}."
    yield from emit("stack.state", key[0], says, events=seen)
    yield from emit("stack.waiting", key[0] in FOR_OTHERS and len(found) > 1, says, events=seen)
    yield from emit("stack.operation", key[1], says, events=seen)
    yield from emit("stack.frame", leading[0].frame, says, events=seen)
    words = "; ".join(f"{one.label} {_words(one)}" for one in found[:8])
    yield from emit("stack.states", words, f"When the stacks were taken: {words}.", events=seen)
    if len(found) > 1:
        same = len({(one.key, one.frame) for one in found}) == 1
        says = (
            "All processes stood at the same place." if same else f"The processes stood at different places: {words}."
        )
        yield from emit("stack.same", same, says, events=seen)
        operations = {one.operation or one.frame for one in found if one.state == "collective"}
        named = {one.operation for one in found if one.state == "collective"}
        differ = len(operations) > 1 and None not in named and len(named) > 1
        yield from emit("stack.op_mismatch", differ, f"The processes stood like this: {words}.", events=seen)
    yield from _odd(found)


def _odd(found: Sequence[Stood]) -> Iterator[Fact]:
    """Name those that do something else while the majority waits for them."""
    others, waiting = apart(found)
    if not others:
        return
    seen = [one.event.event_id for one in (*others, waiting[0])]
    first = others[0]
    rest = waiting[0].label if len(waiting) == 1 else f"each of the other {len(waiting)}"
    if len(others) == 1:
        says = f"{first.label.capitalize()} {_words(first)}, while {rest} {_words(waiting[0])}."
        yield from emit("stack.odd", first.label, says, events=seen)
        yield from emit("stack.odd_rank", first.rank, says, events=seen)
    else:
        says = f"{len(others)} processes do something else than the rest: {first.label} {_words(first)}."
        ranks = [one.rank for one in others if one.rank is not None]
        yield from emit("stack.odd_ranks", listing(ranks) if len(ranks) == len(others) else None, says, events=seen)
    yield from emit("stack.odd_state", first.state, says, events=seen)
    yield from emit("stack.odd_frame", first.frame, says, events=seen)


def workers(events: EventTable) -> Iterator[Fact]:
    """What did the workers of the data loader do?"""
    found = [event for event in events.named("process.stack", kind="process") if event.attr("process") == "data worker"]
    if not found:
        return
    seen = [event.event_id for event in found]
    states = [_worker_state(event) for event in found]
    state, count = Counter(states).most_common(1)[0]
    stuck = sum(item in _STUCK for item in states)
    first = next(event for event, item in zip(found, states, strict=True) if item == state)
    at = frame_text(first.attr("user_frame"))
    doing = _WORKER_WORDS.get(state, f"wait for: {state}" if state in _STUCK else state)
    says = f"{count} of {len(found)} workers of the data loader {doing}" + (f" ({at})." if at else ".")
    yield from emit("stack.workers", len(found), says, events=seen)
    yield from emit("stack.worker_state", state, says, events=seen)
    yield from emit("stack.worker_frame", at, says, events=seen)
    yield from emit("stack.workers_stuck", stuck, says, events=seen)


def _worker_state(event: Event) -> str:
    """Return what holds a worker up where its innermost frames say so, else what it does."""
    state = str(event.attr("state"))
    waits = event.attr("waits_on")
    return str(waits) if waits and state not in {"idle", "queue", "input"} else "idle" if state == "queue" else state


def unchanged(events: EventTable) -> Iterator[Fact]:
    """Did a process stand at the same place in dumps that were taken one after the other?"""
    by_process: dict[tuple[str, Any], list[Event]] = {}
    for event in events.named("process.stack", kind="process"):
        if event.attr("process") == "main":
            by_process.setdefault((event.source, event.attr("pid")), []).append(event)
    repeated = {key: items for key, items in by_process.items() if len(items) > 1}
    if not repeated:
        return
    stuck = [items for items in repeated.values() if _stands(items[-1]) == _stands(items[-2])]
    seen = [event.event_id for items in (stuck or list(repeated.values())) for event in items[-2:]]
    says = f"{len(stuck)} of {len(repeated)} processes stood at the same place in the last two dumps."
    yield from emit("stack.unchanged", len(stuck) * 2 > len(repeated), says, events=seen)


def _stands(event: Event) -> tuple[Any, ...]:
    return event.attr("state"), event.attr("operation"), frame_text(event.attr("user_frame"))


FACTS: tuple[FactFunction, ...] = (stacks, workers, unchanged)

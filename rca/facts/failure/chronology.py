"""Who failed first, when, and what only followed; and the observed failure in words for the report."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping

from rca.diagnosis import Failure
from rca.events import Event, EventTable
from rca.facts.collectives.unfinished import culprit, listing
from rca.facts.emit import emit, number
from rca.facts.failure.first_failure import (
    NEAR_S,
    Chronology,
    Suspect,
    chronology,
    exception_groups,
    is_echo,
    reports_lost_node,
    was_killed,
)
from rca.facts.failure.phase import phase_of
from rca.facts.failure.processes import processes
from rca.facts.failure.progress import progress
from rca.facts.failure.raised import CATALOGUE as OF_THE_EXCEPTION
from rca.facts.failure.raised import raised_at
from rca.facts.failure.roles import owner, signal_number
from rca.facts.interface import Fact, FactFunction, Facts
from rca.facts.training.curves import config_number

CATALOGUE: Mapping[str, str] = {
    "failure.event": "signature id, exception type or process.exit of the event that began the failure",
    "failure.exception": "exception type of that event, dotted as printed, where there is one",
    "failure.kind": "exception | signal | message | silence: what shows that event",
    "failure.source": "file of the run directory that shows it",
    "failure.line": "1-based line in that file",
    "failure.rank": "global rank that failed first",
    "failure.host": "node of that rank",
    "failure.lost_ranks": "number of ranks of the node whose loss is the first failure",
    "failure.time": "when it failed, ISO 8601 UTC",
    "failure.step": "last optimizer step reported before it (step)",
    "failure.phase": "phase in which it failed: startup | load | data | train | eval | save | inference | teardown",
    "failure.lead_s": "seconds between the first failure and the first failure of any other rank or source (s)",
    "failure.only_rank": "exactly one rank failed by itself; the others only followed",
    "failure.ranks": "number of ranks or sources that failed by themselves",
    "failure.same_everywhere": "several ranks raised the same type of exception by themselves",
    "failure.cascade_ranks": "number of ranks or sources whose first failing event is a cascade or a teardown",
    "failure.only_cascades": "there are failing events, but every one of them is the echo of another failure",
    "failure.survived": "number of errors after which the run went on",
    "failure.signal": "number of the signal that killed the process that failed first",
    **OF_THE_EXCEPTION,
}

SAME_RECORD_S = 5.0
"""The lines of one record of the kernel are printed within a second; its clock may show whole seconds only."""


def first(events: EventTable) -> Iterator[Fact]:
    """What began the failure, and where it stands."""
    found = chronology(events)
    if found.survived:
        count = len(found.survived)
        says = f"{count} error{'s' if count > 1 else ''} did not stop the run: steps were reported afterwards."
        yield from emit("failure.survived", count, says, events=[item.event.event_id for item in found.survived])
    if found.first is None:
        return
    event, partner = found.first.event, found.partner
    seen = [event.event_id, *([partner.event_id] if partner is not None else [])]
    place = _place(event)
    what = f"{event.name}: {event.text[:160]}" if event.text else event.name
    yield from emit("failure.event", event.name, f"The first failing event is {what} ({place}).", events=seen)
    raised = next((item for item in (event, partner) if item is not None and item.kind == "exception"), None)
    if raised is not None:
        says = f"{raised.name} was raised ({_place(raised)})."
        yield from emit("failure.exception", raised.name, says, events=[raised.event_id])
        yield from raised_at(raised)
    kind = "exception" if raised is not None else "signal" if was_killed(event) else "message"
    yield from emit("failure.kind", kind, f"The failure shows as {kind} ({place}).", events=seen)
    yield from emit("failure.source", event.source, f"It stands in {place}.", events=seen)
    yield from emit("failure.line", event.line, f"It stands in {place}.", events=seen)
    rank = failing_rank(events)
    yield from emit("failure.rank", rank, f"Rank {rank} failed first ({place}).", events=seen)
    host = _host(event)
    yield from emit("failure.host", host, f"It happened on {host}.", events=seen)
    gone = lost_ranks(events)
    if gone:
        says = f"The node {host} was lost, and with it rank {listing(gone)}."
        yield from emit("failure.lost_ranks", len(gone), says, events=seen)
    if not math.isnan(found.first.time):
        yield from emit("failure.time", iso(found.first.time), f"It failed at {iso(found.first.time)}.", events=seen)
    step = progress(events).step_before(event)
    yield from emit("failure.step", step, f"The last step reported before it is {step}.", unit="step", events=seen)
    phase = phase_of(events, event, partner)
    yield from emit("failure.phase", phase, f"It failed in the phase {phase}.", events=seen)
    if event.kind == "process" and event.value is not None:
        signal = signal_number(int(event.value))
        yield from emit("failure.signal", signal, f"The process was ended by signal {signal}.", events=seen)


def failing_rank(events: EventTable) -> int | None:
    """Return the rank of the first failure.

    For a record of the kernel or a launcher it is the rank of its process id, else the one rank that failed by itself
    at that time, else the task that the scheduler names first; for a lost node it is its lowest rank. When all that is
    seen are echoes, it is the rank that the waiting ones point at, if they agree.
    """
    found = chronology(events)
    if found.first is None:
        return None
    head = found.first
    if head.role != "initiating":
        pointed = culprit(events)
        alone = len(found.first_of_each_lane()) == 1
        return pointed[0] if pointed is not None else owner(head.event) if alone else None
    if owner(head.event) is not None:
        return owner(head.event)
    lost = lost_ranks(events)
    if lost:
        return lost[0]
    record = [item.event for item in found.of("initiating") if _one_record(item, head)]
    named = {_rank_of_process(events, event) for event in record} - {None}
    if len(named) == 1:
        return named.pop()
    own_words = {
        owner(item.event)
        for item in found.of("initiating")
        if not is_echo(item.event) and abs(item.time - head.time) <= NEAR_S * 1e6
    }
    own_words -= {None}
    if own_words:
        return own_words.pop() if len(own_words) == 1 else None
    tasks = [item.event.attr("task") for item in found.of("initiating") if item.event.kind == "process"]
    return next((task for task in tasks if task in events.ranks), None)


def lost_ranks(events: EventTable) -> tuple[int, ...]:
    """Return the ranks of the node whose loss is the first failure, as far as anything says who ran there."""
    head = chronology(events).first
    host = None if head is None or not reports_lost_node(head.event) else _host(head.event)
    return () if host is None else processes(events).on_host(host)


def _host(event: Event) -> str | None:
    node = event.attr("node")
    return event.host or (node if isinstance(node, str) else None)


def _one_record(item: Suspect, head: Suspect) -> bool:
    """Say whether two messages are of one record: the kernel needs several lines to say what it killed and why."""
    near = item.event is head.event or abs(item.time - head.time) <= SAME_RECORD_S * 1e6
    return near and item.event.source == head.event.source


def _rank_of_process(events: EventTable, event: Event) -> int | None:
    pid = event.attr("pid")
    return processes(events).rank(pid, event.host) if isinstance(pid, int) else None


def spread_over_ranks(events: EventTable) -> Iterator[Fact]:
    """Who failed by itself, who only followed, and how long after."""
    found = chronology(events)
    if found.first is None:
        return
    by_lane = _processes(found)
    own = _independent(found)
    followers = [lane for lane in by_lane if lane not in own and lane != found.first.lane]
    seen = [found.first.event.event_id, *(by_lane[lane].event.event_id for lane in followers)]
    says = f"{_listing(own) or 'Nobody'} failed independently; {_listing(followers) or 'nobody'} followed."
    yield from emit("failure.ranks", len(own), says, events=seen)
    yield from emit("failure.cascade_ranks", len(followers), says, events=seen)
    yield from emit("failure.only_cascades", not own, says, events=seen)
    if max(len(events.ranks), len(by_lane), config_number(events, "world_size") or 1) > 1:
        yield from emit("failure.only_rank", len(own) == 1, says, events=seen)
    groups = exception_groups(found)
    common = max(groups.items(), key=lambda item: len(item[1]), default=("", set[str]()))
    if own and len(by_lane) > 1:
        same = len(common[1]) > 1 and set(own) <= common[1]
        says = f"{common[0]} was raised by {len(common[1])} of {len(by_lane)} failing ranks." if common[0] else says
        yield from emit("failure.same_everywhere", same, says, events=seen)
    yield from _lead(found, by_lane)


def _processes(found: Chronology) -> dict[str, Suspect]:
    """Return the first failing event of each process: of each rank, or of each log where no ranks are known."""
    by_lane = found.first_of_each_lane()
    ranked = {lane: item for lane, item in by_lane.items() if owner(item.event) is not None}
    own = {lane: item for lane, item in by_lane.items() if not is_echo(item.event)}
    return ranked or {lane: item for lane, item in own.items() if item.event.kind != "process"} or own


def _independent(found: Chronology) -> list[str]:
    """Ranks that failed by themselves; sources without a rank only where no rank is known to have done so."""
    initiating = [item for item in found.of("initiating") if not is_echo(item.event)] or list(found.of("initiating"))
    ranked = dict.fromkeys(item.lane for item in initiating if owner(item.event) is not None)
    return list(ranked or dict.fromkeys(item.lane for item in initiating))


def _lead(found: Chronology, by_lane: dict[str, Suspect]) -> Iterator[Fact]:
    head = found.first
    if head is None or math.isnan(head.time):
        return
    later = [item for item in found.suspects if item.lane in by_lane and item.lane != head.lane]
    later = [item for item in later if item.time >= head.time]
    if not later:
        return
    follower = min(later, key=lambda item: item.time)
    lead = (follower.time - head.time) / 1e6
    says = f"{follower.lane} failed {number(lead)} s after {head.lane} ({follower.event.name})."
    yield from emit("failure.lead_s", lead, says, unit="s", events=[head.event.event_id, follower.event.event_id])


def failure(events: EventTable, facts: Facts) -> Failure | None:
    """Return the observed failure in words: the first failing event, else what the curves or the silence show."""
    found = chronology(events)
    if found.first is not None:
        return _as_failure(found.first, facts)
    for name in ("loss.nan_step", "loss.masked_nan", "grad_norm.nan_step", "loss.diverged", "eval.loss_nan"):
        fact = facts.get(name)
        if fact is None or fact.value is False:
            continue
        return _from_fact(events, facts, fact)
    for name in ("loss.plateau", "eval.overfit", "throughput.drop", "step.data_share", "run.ended_silently"):
        fact = facts.get(name)
        if fact is not None and (fact.value is True or (name in _SLOW and _at_least(fact, _SLOW[name]))):
            return _from_fact(events, facts, fact)
    return None


_SLOW = {"throughput.drop": 0.2, "step.data_share": 0.3}
"""A fifth of the throughput lost, or 30 % of the step spent waiting for data (FACTS 4, runmedic)."""


def _at_least(fact: Fact, bound: float) -> bool:
    return isinstance(fact.value, (int, float)) and not isinstance(fact.value, bool) and fact.value >= bound


def _as_failure(suspect: Suspect, facts: Facts) -> Failure:
    event = suspect.event
    raised = facts.get("failure.exception")
    signal = facts.get("failure.signal")
    if raised is not None and str(raised.value) not in event.text:
        what = f"{raised.value}: {event.text}" if event.text else str(raised.value)
    elif signal is not None:
        what = f"The process was ended by {event.attr('signal') or f'signal {signal.value}'}"
    elif event.kind == "process" and event.value is not None:
        what = f"The process exited with code {int(event.value)}"
    else:
        what = event.text or event.name
    rank, step, phase = facts.get("failure.rank"), facts.get("failure.step"), facts.get("failure.phase")
    return Failure(
        what=what.strip()[:500],
        rank=int(rank.value) if rank is not None else None,
        host=_host(event),
        step=int(step.value) if step is not None else None,
        time=None if math.isnan(suspect.time) else iso(suspect.time),
        phase=str(phase.value) if phase is not None else None,
        source=event.source,
        line=event.line,
    )


def _from_fact(events: EventTable, facts: Facts, fact: Fact) -> Failure:
    event = events.get(fact.events[0]) if fact.events else None
    steps = ("loss.diverged_step",) if fact.name == "loss.diverged" else (fact.name,)
    known = [facts[name] for name in steps if name in facts and facts[name].unit == "step"]
    step = int(known[0].value) if known else None if event is None else event.step
    return Failure(
        what=fact.says.rstrip("."),
        rank=None if event is None else event.rank,
        host=None if event is None else event.host,
        step=step,
        time=None if event is None or event.time is None else iso(float(event.time)),
        phase="eval" if fact.name.startswith("eval.") else "train",
        source="" if event is None else event.source,
        line=None if event is None else event.line,
    )


def iso(time: float) -> str:
    """Write microseconds since the epoch as ISO 8601 in UTC."""
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(microseconds=time)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _place(event: Event) -> str:
    place = event.source if event.line is None else f"{event.source}:{event.line}"
    rank = owner(event)
    return place if rank is None else f"{place}, rank {rank}"


def _listing(lanes: list[str]) -> str:
    shown = ", ".join(lanes[:6])
    return shown if len(lanes) <= 6 else f"{shown} and {len(lanes) - 6} more"


FACTS: tuple[FactFunction, ...] = (first, spread_over_ranks)

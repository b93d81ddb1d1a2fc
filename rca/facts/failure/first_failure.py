"""Which event began the failure, over all ranks and sources."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from rca.events import Event, EventTable
from rca.facts.failure.progress import clock, progress
from rca.facts.failure.roles import Role, effective_role, owner, short_name, signal_number
from rca.facts.memo import once_per_table

SURVIVED_STEPS = 3
"""Progress after an error that makes it a survived one: synchronous ranks can print at most one more step."""
TORN_LINES = 80
"""Lines of other ranks between a stack and its last line in a merged log."""
SAME_BLOCK_LINES = 3
"""Lines between the end of a traceback and a signature found in its last line."""
_GOODBYES = frozenset({"run.completed", "run.exit_zero", "run.early_stopped", "megatron.exit_interval"})
_COMMUNICATION = ("nccl.", "c10d.", "gloo.", "ucx.", "torchelastic.rendezvous")
_SYSTEM = ("kernel.", "nvidia.", "gpu.", "slurm.", "batch.", "k8s.", "kubernetes.", "scheduler.", "cluster.")
_LAUNCHERS = ("torchelastic.", "launcher.", "slurm.task", "torch.spawn")
_LAUNCHER_EXCEPTIONS = frozenset({"ChildFailedError", "CalledProcessError", "ProcessExitedException"})
_FAULTS = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "Segmentation fault", "Bus error", "Aborted")
_KILLED = ("killed", "signal", "worker_lost")
_WATCHDOGS = frozenset({"stuck", "watchdog_timeout", "watchdog_stuck"})
"""Last words of signatures in which a process says that it stood still too long and will be ended for that."""
NODE_SILENCE_S = 1800.0
"""Slurm declares a node dead after SlurmdTimeout, 300 s by default and often more."""
RECORD_S = 600.0
"""A record of the kernel or the scheduler within this time of a killed process is about it; clocks may differ."""
NEAR_S = 120.0
"""A rank that dies by itself drags the others down at once when sockets close, and within minutes at the latest."""
_CLASSES: tuple[Role, ...] = ("initiating", "cascade", "teardown")


@dataclass(frozen=True)
class Suspect:
    """One failing event with its place in the order of things."""

    event: Event
    role: Role
    time: float
    """Microseconds since the epoch; NaN when unknown."""

    @property
    def lane(self) -> str:
        """Who it belongs to: a rank where one is known, else the source."""
        rank = owner(self.event)
        return self.event.source if rank is None else f"rank {rank}"


@dataclass(frozen=True)
class Chronology:
    """The order of the failure."""

    first: Suspect | None
    """The event that began it; an initiating one, or the earliest that there is."""
    partner: Event | None
    """The exception behind the first event when that is a signature, or the other way round."""
    suspects: tuple[Suspect, ...]
    """All failing events that were not survived, in order."""
    survived: tuple[Suspect, ...]
    """Errors after which the run went on."""

    def of(self, role: Role) -> tuple[Suspect, ...]:
        """Return the suspects of one role, in order."""
        return tuple(suspect for suspect in self.suspects if suspect.role == role)

    def first_of_each_lane(self) -> dict[str, Suspect]:
        """Return who failed, with the first failing event of each."""
        found: dict[str, Suspect] = {}
        for suspect in self.suspects:
            found.setdefault(suspect.lane, suspect)
        return found


@once_per_table
def chronology(events: EventTable) -> Chronology:
    """Order all failing events and pick the one that began the failure.

    An error after which the steps went on does not count, nor does a connection that breaks when ranks leave a job that
    the scheduler has as completed. An initiating event beats a cascade, which beats a teardown, whatever their times:
    communication errors are often printed before the traceback that set them off is flushed.
    """
    times = clock(events)
    steps = progress(events)
    found: list[Suspect] = []
    for event in events.events:
        role = effective_role(event)
        if role is not None:
            found.append(Suspect(event=event, role=role, time=times.time(event)))
    ends = finish_lines(events)
    found = _after_watchdogs(found)
    survived: list[Suspect] = []
    suspects: list[Suspect] = []
    for suspect in found:
        event = suspect.event
        over = steps.goes_on_after(event) >= SURVIVED_STEPS or _finished_after(suspect, ends)
        (survived if over and event.kind != "process" else suspects).append(suspect)
    suspects = [suspect for suspect in suspects if not _finished_below(suspect, suspects)]
    if completed_jobs(events) and all(_is_farewell(suspect) for suspect in suspects):
        survived, suspects = survived + suspects, []
    suspects.sort(key=lambda suspect: suspect.event.event_id)
    first = _pick(suspects)
    return Chronology(
        first=first,
        partner=None if first is None else _partner(first, suspects),
        suspects=tuple(suspects),
        survived=tuple(survived),
    )


def completed_jobs(events: EventTable) -> tuple[Event, ...]:
    """Return the jobs and steps in the accounts of the scheduler where all of them completed, else nothing."""
    jobs = tuple(event for event in events.named("system.slurm_job") if event.attr("state"))
    return jobs if all(str(event.attr("state")).startswith("COMPLETED") for event in jobs) else ()


def _is_farewell(suspect: Suspect) -> bool:
    """Say whether a message may be no more than that another rank left first."""
    return suspect.role != "initiating" and suspect.event.kind == "log"


def _after_watchdogs(found: Sequence[Suspect]) -> list[Suspect]:
    """A process that is killed below the word of a watchdog was killed for standing still: the kill began nothing."""
    first: dict[str, int] = {}
    for suspect in found:
        event = suspect.event
        if event.line is not None and event.name.rsplit(".", 1)[-1] in _WATCHDOGS:
            first.setdefault(event.source, event.line)
    return [
        replace(suspect, role="teardown")
        if suspect.event.kind == "process"
        and was_killed(suspect.event)
        and (suspect.event.line or 0) > first.get(suspect.event.source, math.inf)
        else suspect
        for suspect in found
    ]


def _finished_below(suspect: Suspect, suspects: Sequence[Suspect]) -> bool:
    """Say whether a stack without its last line is continued by a message: other output tore the two apart."""
    event = suspect.event
    if event.kind != "exception" or not event.attr("truncated") or event.line is None:
        return False
    return any(
        other is not suspect
        and other.role == "initiating"
        and other.event.kind != "process"
        and other.event.source == event.source
        and other.event.line is not None
        and 0 <= other.event.line - event.line <= TORN_LINES
        for other in suspects
    )


def finish_lines(events: EventTable) -> tuple[Event, ...]:
    """Return the events that say that the job finished."""
    return tuple(event for event in events.of_kind("log") if says_finished(event.name))


def says_finished(name: str) -> bool:
    """Say whether a signature is a goodbye: `run.completed`, `run.exit_zero`, `lightning.fit_finished`, ..."""
    return name in _GOODBYES or name.endswith((".completed", ".finished", "_completed", "_finished"))


def _finished_after(suspect: Suspect, ends: Sequence[Event]) -> bool:
    event = suspect.event
    for end in ends:
        if end.source == event.source and end.line is not None and event.line is not None:
            if end.line > event.line:
                return True
        elif end.time is not None and not math.isnan(suspect.time) and end.time > suspect.time + 60e6:
            return True
    return False


def _pick(suspects: Sequence[Suspect]) -> Suspect | None:
    for role in _CLASSES:
        named = [suspect for suspect in suspects if suspect.role == role]
        if not named:
            continue
        if role == "cascade":
            named = [suspect for suspect in named if not is_launcher(suspect.event)] or named
        explicit = [suspect for suspect in named if suspect.event.kind != "process"]
        return _reason_for(_first_of(_with_reason(named, explicit)), named)
    return None


def is_launcher(event: Event) -> bool:
    """Say whether a launcher reports that a child of its own is gone: it knows when, but not why."""
    return event.name.startswith(_LAUNCHERS) or short_name(event.name) in _LAUNCHER_EXCEPTIONS


def _with_reason(named: list[Suspect], explicit: list[Suspect]) -> list[Suspect]:
    """Leave out exit codes of a rank that also said why it died."""
    spoken = {suspect.lane for suspect in explicit}
    return [suspect for suspect in named if suspect.event.kind != "process" or suspect.lane not in spoken]


def _earliest(named: Sequence[Suspect]) -> Suspect:
    """Earliest by time. Between a source with times and one without, what was raised outranks what was reported."""
    timed = [suspect for suspect in named if not math.isnan(suspect.time)]
    raised = [suspect for suspect in named if math.isnan(suspect.time) and _is_own_word(suspect.event)]
    if raised and not any(_is_own_word(suspect.event) for suspect in timed):
        return raised[0]
    return min(timed or named, key=lambda suspect: (suspect.time if timed else 0.0, suspect.event.event_id))


def _is_own_word(event: Event) -> bool:
    """Say whether the failing process itself said it: a traceback, or a fatal message of the training software."""
    return event.kind == "exception" or (
        event.kind == "log" and event.severity == "fatal" and not event.name.startswith(_SYSTEM)
    )


def _first_of(named: list[Suspect]) -> Suspect:
    """Earliest; but a communication error is believed only when nothing else failed around that time."""
    head = _earliest(named)
    if not head.event.name.startswith(_COMMUNICATION):
        return head
    near = [suspect for suspect in named if not suspect.time > head.time + _reach(suspect.event) * 1e6]
    own = [suspect for suspect in near if not suspect.event.name.startswith((*_COMMUNICATION, *_SYSTEM))]
    records = [suspect for suspect in near if suspect.event.name.startswith(_SYSTEM)]
    return _earliest(own or records or [head])


def _reach(event: Event) -> float:
    """Seconds within which a record may still explain a lost connection: a dead node is only noticed by its silence."""
    return NODE_SILENCE_S if reports_lost_node(event) else NEAR_S


def reports_lost_node(event: Event) -> bool:
    """Say whether the scheduler or the cluster reports that a node is gone."""
    return event.kind == "log" and ("node_fail" in event.name or "node_lost" in event.name)


def _reason_for(head: Suspect, named: Sequence[Suspect]) -> Suspect:
    """A process that was only killed is explained by the kernel, the scheduler or the cluster where they said so."""
    if not was_killed(head.event):
        return head
    records = [
        suspect
        for suspect in named
        if suspect.event.name.startswith(_SYSTEM) and not abs(suspect.time - head.time) > RECORD_S * 1e6
    ]
    return _earliest(records) if records else head


def is_echo(event: Event) -> bool:
    """Say whether an initiating message may still be the echo of another failure: of the network or of a launcher."""
    return event.name.startswith((*_COMMUNICATION, *_SYSTEM)) or is_launcher(event)


def was_killed(event: Event) -> bool:
    """Say whether an event shows no more than that a process was ended from outside."""
    if event.kind == "process":
        return event.value is not None and signal_number(int(event.value)) in {9, 15}
    last = event.name.rsplit(".", 1)[-1]
    named = event.kind == "log" and any(word in last for word in _KILLED)
    return named and not any(fault in event.text for fault in _FAULTS)


def _partner(first: Suspect, suspects: Sequence[Suspect]) -> Event | None:
    event = first.event
    for suspect in suspects:
        other = suspect.event
        if {other.kind, event.kind} != {"log", "exception"} or other.source != event.source:
            continue
        if other.line is None or event.line is None or abs(other.line - event.line) > SAME_BLOCK_LINES:
            continue
        return other
    return None


def exception_groups(found: Chronology) -> dict[str, set[str]]:
    """Return exception type -> lanes that raised it."""
    raised = sorted(
        (short_name(item.event.name), item.lane) for item in found.suspects if item.event.kind == "exception"
    )
    return {name: {lane for _, lane in group} for name, group in groupby(raised, key=lambda pair: pair[0])}

"""What the scheduler says of the job and of its nodes: Slurm, PBS, Kubernetes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from rca.events import Event, EventTable
from rca.facts.emit import emit, percent
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "env.slurm_state": "state that Slurm's accounting gives the job",
    "env.slurm_time_share": "elapsed time over the time limit",
    "env.max_rss_share": "largest resident memory over the memory that was requested",
    "env.job_node_down": "node of the job that Slurm calls down, failed or not responding",
    "env.node_condition": "condition of a Kubernetes node that is not as it should be",
    "env.job_condition": "last condition of the Kubernetes job that says how it ended",
    "env.pod_ended_by": "the warning of Kubernetes about the pod that tells most about its end",
    "env.pod_reason": "reason that Kubernetes gives for the end of the whole pod",
    "env.eviction": "what the node was short of when it evicted the pod, or `other`",
}
_BAD_STATES = ("FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_ME", "BOOT_FAIL", "DEADLINE")
_STEP_TELLS = ("OUT_OF_ME", "NODE_FAIL")
"""States of a step that say more than the state of the job around it."""
_DOWN = re.compile(r"DOWN|FAIL|NOT_RESPONDING|ERROR", re.I)
_GONE = re.compile(r"not responding|unexpectedly rebooted|node failure|power|kernel|xid", re.I)
_RANGE = re.compile(
    r"([A-Za-z][A-Za-z0-9_.-]{0,60}?)\[([0-9,-]{1,200})\]([A-Za-z0-9_.-]{0,40})|([A-Za-z][A-Za-z0-9_.-]{0,80})"
)
_MOST_NODES = 20_000
_SHORT_OF = re.compile(
    r"low on resource: (?P<named>[a-z-]+)|(?P<memory>MemoryPressure)"
    r"|(?P<disk>ephemeral local storage usage|local ephemeral storage limit|DiskPressure)"
)
_TELLING = (
    "OOMKilling",
    "Preempted",
    "Preempting",
    "NodeNotReady",
    "NodeLost",
    "NodeShutdown",
    "TaintManagerEviction",
    "Evicted",
    "DeadlineExceeded",
    "FailedScheduling",
    "FailedMount",
    "BackOff",
)
"""Reasons of events, those that name the end of a pod before those that follow from it."""
_PRESSURE = frozenset({"memorypressure", "diskpressure", "pidpressure", "networkunavailable"})


def accounts(events: EventTable) -> Iterator[Fact]:
    """What does the accounting say of the job?"""
    jobs = (*events.named("system.slurm_job"), *events.named("system.batch_job"))
    stated = [event for event in events.named("system.slurm_job") if event.attr("state")]
    bad = [event for event in stated if str(event.attr("state")).startswith(_BAD_STATES)]
    if bad:
        own = [event for event in bad if _base(event) == _base(bad[0])]
        telling = [event for event in own if str(event.attr("state")).startswith(_STEP_TELLS)]
        bad = telling or bad
    for event in (bad or stated)[:1]:
        state = str(event.attr("state")).split(" ")[0]
        yield from emit("env.slurm_state", state, f"Slurm gives the job the state {state}.", events=_ids(bad or stated))
    timed = [item for item in jobs if item.attr("elapsed_s") and item.attr("time_limit_s")]
    if timed:
        share = max(item.attr("elapsed_s") / item.attr("time_limit_s") for item in timed)
        says = f"The job used {percent(share)} of its time limit."
        yield from emit("env.slurm_time_share", round(share, 4), says, events=_ids(timed))
    wanted = max((int(item.attr("requested_memory_bytes") or 0) for item in jobs), default=0)
    used = [item for item in jobs if item.attr("max_rss_bytes")]
    if used and wanted:
        share = max(int(item.attr("max_rss_bytes")) for item in used) / wanted
        says = f"The largest resident memory is {percent(share)} of the memory that was requested."
        yield from emit("env.max_rss_share", round(share, 4), says, events=_ids(used))


def _base(event: Event) -> str:
    """Return the job that a step belongs to."""
    return str(event.attr("job_id") or "").split(".", maxsplit=1)[0]


def nodes(events: EventTable) -> Iterator[Fact]:
    """Is a node of the job down? Nodes of others are down on every cluster, so only its own count."""
    jobs = [event for event in events.named("system.slurm_job") if event.attr("nodes")]
    own = {name for event in jobs for name in node_names(str(event.attr("nodes")))} | set(events.hosts)
    for event in events.named("system.slurm_node") if own else ():
        state, reason = str(event.attr("state") or ""), str(event.attr("reason") or "")
        if not (_DOWN.search(state) or _GONE.search(reason)):
            continue
        down = sorted(own & set(node_names(str(event.attr("nodes") or ""))))
        if down:
            why = f" ({reason})" if reason else ""
            says = f"Slurm calls the node {down[0]} of the job {state.lower()}{why}."
            yield from emit("env.job_node_down", down[0], says, events=[event.event_id])
            return


def node_names(listed: str) -> list[str]:
    """Return the nodes of a list as Slurm writes it: `n[1-3,7],m2`."""
    found: list[str] = []
    for match in _RANGE.finditer(listed[:4000]):
        if match[4]:
            found.append(match[4])
            continue
        for part in match[2].split(","):
            first, _, last = part.partition("-")
            if not first.isdigit() or (last and not last.isdigit()) or len(first) > 8 or len(last) > 8:
                continue
            stop = min(int(last or first), int(first) + _MOST_NODES)
            width = len(first)
            found += [f"{match[1]}{number:0{width}d}{match[3]}" for number in range(int(first), stop + 1)]
            if len(found) > _MOST_NODES:
                return found[:_MOST_NODES]
    return found


def conditions(events: EventTable) -> Iterator[Fact]:
    """Which conditions of nodes and jobs does Kubernetes report?"""
    shown = events.named("system.condition", kind="system")
    wrong = [event for event in shown if event.attr("object_kind") == "Node" and _is_wrong(event)]
    if wrong:
        event = max(wrong, key=lambda item: str(item.attr("type")) == "Ready")
        words = f"{event.attr('type')}={event.attr('status')}"
        says = f"Kubernetes reports {words} for the node {event.attr('object')}{_because(event)}"
        yield from emit("env.node_condition", words, says, events=[event.event_id])
    ended = [
        event
        for event in shown
        if event.attr("object_kind") != "Node"
        and str(event.attr("status")) == "True"
        and str(event.attr("type")) in {"Failed", "Succeeded", "Complete", "Completed", "Suspended"}
    ]
    if ended:
        event = ended[-1]
        words = f"{event.attr('type')} ({event.attr('reason')})"
        says = f"Kubernetes gives the job {event.attr('object')} the condition {words}{_because(event)}"
        yield from emit("env.job_condition", words, says, events=[event.event_id])


def _because(event: Event) -> str:
    """Return what an event says, as the end of a sentence."""
    words = event.text[:200].strip().rstrip(".")
    return f": {words}." if words else "."


def _is_wrong(event: Event) -> bool:
    kind, status = str(event.attr("type")), str(event.attr("status"))
    return (kind == "Ready" and status != "True") or (kind.lower() in _PRESSURE and status == "True")


def ended_by(events: EventTable) -> Iterator[Fact]:
    """Which warning of Kubernetes tells most about the end of the pod?"""
    warned = [event for event in events.named("system.pod_event") if event.attr("type") == "Warning"]
    for reason in _TELLING:
        found = [event for event in warned if event.attr("reason") == reason]
        if found:
            says = f"Kubernetes warned: {reason}{_because(found[0])}"
            yield from emit("env.pod_ended_by", reason, says, events=_ids(found))
            return


def pod_reason(events: EventTable) -> Iterator[Fact]:
    """Why does Kubernetes say that the pod as a whole ended? Its containers only tell a signal then."""
    told = [item for item in events.named("system.container") if item.attr("pod_reason")]
    for event in told[:1]:
        reason = str(event.attr("pod_reason"))
        says = f"Kubernetes ended the pod with the reason {reason}."
        yield from emit("env.pod_reason", reason, says, events=_ids(told))


def eviction(events: EventTable) -> Iterator[Fact]:
    """Was the pod evicted, and for want of what?"""
    pods = [item for item in events.named("system.container") if item.attr("pod_reason") == "Evicted"]
    told = [item for item in events.named("system.pod_event") if item.attr("reason") == "Evicted"]
    for event in (*told, *pods)[:1]:
        words = " ".join(str(item.attr("pod_message") or item.attr("message") or "") for item in (*told, *pods)[:20])
        short = _SHORT_OF.search(words)
        want = _want(short) if short else "other"
        says = "The pod was evicted" + (f": it or its node was short of {want}." if short else ".")
        yield from emit("env.eviction", want, says, events=[event.event_id])


def _want(short: re.Match[str]) -> str:
    if short["named"]:
        return short["named"]
    return "ephemeral-storage" if short["disk"] else "memory"


def _ids(events: Sequence[Event]) -> list[int]:
    return [event.event_id for event in events]


FACTS: tuple[FactFunction, ...] = (accounts, nodes, conditions, ended_by, pod_reason, eviction)

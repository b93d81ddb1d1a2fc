"""What the host was doing around the job: waiting for disks, swapping, killing for memory, losing packets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rca.events import Event, EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "env.iowait_share": "share of the host's processor time that waits for disks",
    "env.swap_kb_s": "rate at which the host moves memory to and from swap (KiB/s)",
    "env.swap_used_share": "share of the swap space in use",
    "env.disk_busy_share": "share of the time in which the busiest disk works",
    "env.disk_wait_ms": "time that a request to that disk takes (ms)",
    "env.stuck_processes": "processes that wait inside the kernel (state D)",
    "env.cgroup_oom_kills": "processes of the container that the kernel killed for lack of memory",
    "env.cpu_count": "processors of the host",
    "env.port_errors": "errors that a network port counted since it was last reset",
    "memory.oom_victim": "process that the kernel killed for lack of memory",
    "memory.oom_victim_gib": "memory that it held (GiB)",
    "memory.oom_limit_gib": "memory limit of the group that was full (GiB)",
    "memory.oom_largest": "process that held most memory at that time",
}
_GIB = 1024**3


def load(events: EventTable) -> Iterator[Fact]:
    """Does the host wait for its disks, or swap?"""
    shown = events.named("system.load", kind="system")
    waits = _numbers(shown, "iowait_percent")
    if waits:
        share = float(np.median([value for _event, value in waits])) / 100
        says = f"{percent(share)} of the host's processor time waits for disks."
        yield from emit("env.iowait_share", round(share, 4), says, events=[event.event_id for event, _value in waits])
    moved = [(event, float(event.attr("swap_in")) + float(event.attr("swap_out"))) for event in shown if _swaps(event)]
    if moved:
        rate = float(np.median([value for _event, value in moved]))
        says = f"The host moves {number(rate)} KiB a second to and from swap."
        yield from emit("env.swap_kb_s", rate, says, unit="KiB/s", events=[event.event_id for event, _value in moved])
    swap = [event for event in events.named("system.memory") if event.attr("swap_total_bytes")]
    if swap:
        event = max(swap, key=_swap_share)
        share = _swap_share(event)
        yield from emit(
            "env.swap_used_share",
            round(share, 4),
            f"{percent(share)} of the swap space is in use.",
            events=[event.event_id],
        )


def _numbers(shown: Sequence[Event], key: str) -> list[tuple[Event, float]]:
    return [(event, float(event.attr(key))) for event in shown if isinstance(event.attr(key), (int, float))]


def _swaps(event: Event) -> bool:
    return all(isinstance(event.attr(key), (int, float)) for key in ("swap_in", "swap_out"))


def _swap_share(event: Event) -> float:
    return float(event.attr("swap_used_bytes") or 0) / float(event.attr("swap_total_bytes"))


def disks(events: EventTable) -> Iterator[Fact]:
    """How busy is the busiest disk?"""
    by_disk: dict[str, list[Event]] = {}
    for event in events.named("system.disk", kind="system"):
        if event.value is not None:
            by_disk.setdefault(str(event.attr("device")), []).append(event)
    if not by_disk:
        return
    # The first report of iostat is an average since the host started.
    later = {name: shown[1:] or shown for name, shown in by_disk.items()}
    busy = {name: float(np.median([event.value or 0.0 for event in shown])) for name, shown in later.items()}
    name = max(busy, key=lambda item: (busy[item], item))
    shown = later[name]
    says = f"The disk {name} is busy {busy[name]:.0f} % of the time."
    yield from emit("env.disk_busy_share", round(busy[name] / 100, 4), says, events=[shown[0].event_id])
    waits = [
        max(float(event.attr(key) or 0) for key in ("read_wait_ms", "write_wait_ms", "wait_ms")) for event in shown
    ]
    says = f"A request to the disk {name} takes {number(float(np.median(waits)))} ms."
    yield from emit("env.disk_wait_ms", float(np.median(waits)), says, unit="ms", events=[shown[0].event_id])


def processes(events: EventTable) -> Iterator[Fact]:
    """Do processes hang inside the kernel, and how many processors are there?"""
    stuck = [event for event in events.named("system.process") if event.attr("state") == "D"]
    if stuck:
        says = f"{len(stuck)} processes wait inside the kernel, e.g. {stuck[0].text[:60]}."
        yield from emit("env.stuck_processes", len(stuck), says, events=[event.event_id for event in stuck])
    cpus = [event for event in events.named("system.cpu") if isinstance(event.attr("cpus"), int)]
    if cpus:
        count = int(cpus[0].attr("cpus"))
        yield from emit("env.cpu_count", count, f"The host has {count} processors.", events=[cpus[0].event_id])


def killed(events: EventTable) -> Iterator[Fact]:
    """Whom did the kernel kill for lack of memory, and which limit was reached?"""
    groups = [event for event in events.named("system.cgroup") if event.attr("oom_kill") is not None]
    if groups:
        event = max(groups, key=lambda item: int(item.attr("oom_kill")))
        count = int(event.attr("oom_kill"))
        says = f"The kernel killed {count} processes of the container for lack of memory."
        yield from emit("env.cgroup_oom_kills", count, says, events=[event.event_id])
    reports = events.named("system.oom_report", kind="system")
    if not reports:
        return
    report = reports[0]
    seen = [report.event_id]
    victim = report.attr("killed") or f"process {report.attr('pid')}"
    held = (int(report.attr("anon_bytes") or 0) + int(report.attr("shared_bytes") or 0)) / _GIB
    says = f"The kernel killed {victim}, which held {number(held)} GiB."
    yield from emit("memory.oom_victim", str(victim), says, events=seen)
    yield from emit("memory.oom_victim_gib", round(held, 3), says, unit="GiB", events=seen)
    if report.attr("limit_bytes"):
        limit = int(report.attr("limit_bytes")) / _GIB
        says = f"The group of the killed process had reached its limit of {number(limit)} GiB."
        yield from emit("memory.oom_limit_gib", round(limit, 3), says, unit="GiB", events=seen)
    tasks = report.attr("tasks") or []
    if tasks:
        size = int(tasks[0]["rss_bytes"]) / _GIB
        says = f"Most memory was held by {tasks[0]['name']} (pid {tasks[0]['pid']}): {number(size)} GiB."
        yield from emit("memory.oom_largest", str(tasks[0]["name"]), says, events=seen)


def ports(events: EventTable) -> Iterator[Fact]:
    """Did a network port count errors?"""
    shown = [event for event in events.named("system.port_errors") if event.value is not None]
    if shown:
        worst = max(shown, key=lambda event: event.value or 0.0)
        count = int(worst.value or 0)
        named = ", ".join(f"{name} {value}" for name, value in list((worst.attr("counters") or {}).items())[:4])
        says = f"A network port counted {count} errors" + (f": {named}." if named else ".")
        yield from emit("env.port_errors", count, says, events=[worst.event_id])


FACTS: tuple[FactFunction, ...] = (load, disks, processes, killed, ports)

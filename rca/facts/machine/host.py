"""The host around the job: file systems, containers, limits, other users of the device."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from rca.events import Event, EventTable
from rca.facts.emit import emit, percent
from rca.facts.failure.first_failure import chronology, finish_lines
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "env.shm_gib": "size of /dev/shm (GiB)",
    "env.shm_used_share": "share of /dev/shm in use",
    "env.disk_used_share": "share in use of the fullest file system",
    "env.disk_fullest": "where that file system is mounted",
    "env.memory_limit_gib": "memory limit of the container (GiB)",
    "env.container_reason": "why the container last ended, e.g. OOMKilled",
    "env.container_restarts": "restarts of the container",
    "env.pod_warning": "reason of the most frequent warning about the pod",
    "env.ib_ports_down": "interconnect ports that are not active while another port of the host is",
    "env.ib_ports_slow": "active interconnect ports at less than half the rate of another one on the same kind of card",
    "env.open_files_limit": "limit of open files",
    "env.locked_memory_limited": "locked memory is limited (RDMA needs it unlimited)",
    "env.host_memory_used_share": "share of the host memory in use",
    "env.cpu_idle_share": "share of the host's processor time that is idle",
    "env.busy_processes": "processes that keep a processor core at 90 % or more",
    "gpu.memory_used_share": "share of the fullest device's memory in use",
    "gpu.used_before_start_share": "share of the fullest device's memory in use before the job started",
    "crash.places": "libraries in which the kernel saw processes crash",
    "gpu.idle_beside_job": "the devices hold no compute process and next to nothing while the job trains",
    "gpu.foreign_processes": "compute processes on the devices that belong to somebody else",
}
_BUSY_PERCENT = 90.0
_IDLE_MEMORY, _IDLE_PERCENT = 0.1, 10
"""A desktop takes some hundred MiB and a few per cent of a device."""
_MUCH = 0.1
"""Share of a device that a job does not hold before it has said anything."""
_FILLED = 0.05
"""Share of a device above which more than the driver's own reserve is in use."""
_GIB = 1024**3


def file_systems(events: EventTable) -> Iterator[Fact]:
    """How full are the file systems, and how large is shared memory?"""
    shown = [event for event in events.named("system.filesystem") if event.attr("size_bytes")]
    shared = [event for event in shown if event.attr("mount") == "/dev/shm"]
    containers = [event for event in events.named("system.container") if event.attr("shm_bytes")]
    if shared:
        event = max(shared, key=lambda item: item.value or 0.0)
        size = event.attr("size_bytes") / _GIB
        yield from emit(
            "env.shm_gib", round(size, 4), f"/dev/shm has {size:.3g} GiB.", unit="GiB", events=[event.event_id]
        )
        says = f"/dev/shm is {percent(event.value or 0.0)} full."
        yield from emit("env.shm_used_share", event.value, says, events=[event.event_id])
    elif containers:
        size = min(int(event.attr("shm_bytes")) for event in containers) / _GIB
        says = f"The container's /dev/shm has {size:.3g} GiB."
        yield from emit("env.shm_gib", round(size, 4), says, unit="GiB", events=_ids(containers))
    disks = [event for event in shown if event.attr("mount") != "/dev/shm" and event.value is not None]
    if disks:
        event = max(disks, key=lambda item: item.value or 0.0)
        says = f"{event.attr('mount')} is {percent(event.value or 0.0)} full."
        yield from emit("env.disk_used_share", event.value, says, events=[event.event_id])
        yield from emit("env.disk_fullest", str(event.attr("mount")), says, events=[event.event_id])


def containers(events: EventTable) -> Iterator[Fact]:
    """What limits does the container have, and why did it end?"""
    shown = events.named("system.container")
    limits = [event for event in shown if event.attr("memory_limit_bytes")]
    if limits:
        size = min(int(event.attr("memory_limit_bytes")) for event in limits) / _GIB
        says = f"The container may use {size:.3g} GiB of memory."
        yield from emit("env.memory_limit_gib", round(size, 3), says, unit="GiB", events=_ids(limits))
    ended = [event for event in shown if _reason(event)]
    if ended:
        reason = str(_reason(ended[0]))
        says = f"The container last ended with the reason {reason}."
        yield from emit("env.container_reason", reason, says, events=_ids(ended))
    restarted = [event for event in shown if isinstance(event.attr("restarts"), int)]
    if restarted:
        count = max(int(event.attr("restarts")) for event in restarted)
        yield from emit(
            "env.container_restarts", count, f"The container restarted {count} times.", events=_ids(restarted)
        )
    warnings = [event for event in events.named("system.pod_event") if event.attr("type") == "Warning"]
    if warnings:
        event = max(warnings, key=lambda item: int(item.attr("count", 1) or 1))
        reason = str(event.attr("reason"))
        says = f"Kubernetes warned about the pod: {reason}."
        yield from emit("env.pod_warning", reason, says, events=[event.event_id])


def _reason(event: Event) -> str | None:
    for key in ("last_reason", "reason", "pod_reason"):
        value = event.attr(key)
        if value and value not in {"CrashLoopBackOff", "Completed", "ContainerCreating"}:
            return str(value)
    return None


def _slow_ports(ports: Sequence[Event]) -> Iterator[Fact]:
    """Cards of one kind are of one speed: a port that trained at less than half of it has a bad cable or lane."""
    rates: dict[str, list[tuple[float, Event]]] = {}
    for event in ports:
        rate = re.match(r"\d+", str(event.attr("rate") or ""))
        if event.value == 1 and rate and event.attr("card"):
            rates.setdefault(str(event.attr("card")), []).append((float(rate[0]), event))
    slow = [
        (rate, best, event)
        for same in rates.values()
        for best in [max(rate for rate, _event in same)]
        for rate, event in same
        if 2 * rate < best
    ]
    if rates:
        says = f"{len(slow)} of {len(ports)} interconnect ports run below their speed"
        if slow:
            speed, best, event = slow[0]
            says += f": {event.attr('adapter')} at {speed:.0f} Gb/s, where others of its kind have {best:.0f}"
        yield from emit(
            "env.ib_ports_slow", len(slow), f"{says}.", events=_ids([event for *_rates, event in slow] or ports)
        )


def host(events: EventTable) -> Iterator[Fact]:
    """Which limits, ports and processes does the host show?"""
    ports = events.named("system.ib_port")
    if ports:
        down = [event for event in ports if event.value == 0]
        some = any(event.value == 1 for event in ports)
        count = len(down) if some or len(ports) == 1 else 0
        named = f": {down[0].text}" if down else ""
        says = f"{count} of {len(ports)} interconnect ports are not active{named}."
        yield from emit("env.ib_ports_down", count, says, events=_ids(down or ports))
        yield from _slow_ports(ports)
    for event in events.named("system.limit"):
        if event.attr("flag") == "-n" and event.value is not None:
            says = f"A process may open {event.value:.0f} files."
            yield from emit("env.open_files_limit", int(event.value), says, events=[event.event_id])
        if event.attr("flag") == "-l":
            limited = not event.attr("unlimited")
            says = "Locked memory is limited." if limited else "Locked memory is unlimited."
            yield from emit("env.locked_memory_limited", limited, says, events=[event.event_id])
    memory = [event for event in events.named("system.memory") if event.value is not None]
    if memory:
        share = max(event.value or 0.0 for event in memory)
        says = f"{percent(share)} of the host memory is in use."
        yield from emit("env.host_memory_used_share", round(share, 4), says, events=_ids(memory))
    load = [event for event in events.named("system.load") if event.attr("idle_percent") is not None]
    if load:
        idle = load[-1].attr("idle_percent") / 100
        says = f"{percent(idle)} of the host's processor time is idle."
        yield from emit("env.cpu_idle_share", round(idle, 4), says, events=_ids(load))
        busy = [event for event in events.named("system.process") if (event.value or 0.0) >= _BUSY_PERCENT]
        says = f"{len(busy)} processes keep a core busy" + (f", e.g. {busy[0].text}." if busy else ".")
        yield from emit("env.busy_processes", len(busy), says, events=_ids(busy or load))


def device_memory(events: EventTable) -> Iterator[Fact]:
    """How full are the devices, and who is on them?"""
    shown = [event for event in events.named("system.gpu") if event.attr("memory_total_bytes")]
    shown = [event for event in shown if event.attr("memory_used_bytes") is not None]
    if shown:
        fullest = max(shown, key=_used_share)
        yield from emit("gpu.memory_used_share", round(_used_share(fullest), 4), _used(fullest), events=_ids([fullest]))
    start = _start(events)
    before = [event for event in shown if start is not None and event.time is not None and event.time < start]
    if before:
        fullest = max(before, key=_used_share)
        share = round(_used_share(fullest), 4)
        says = f"Before the job started: {_used(fullest)}"
        yield from emit("gpu.used_before_start_share", share, says, events=_ids([fullest]))
    foreign = _foreign(events, start)
    if foreign is not None:
        biggest = max(foreign, key=lambda item: int(item.attr("memory_bytes") or 0), default=None)
        says = "No process of somebody else is on the devices."
        if biggest is not None:
            size = int(biggest.attr("memory_bytes") or 0) / _GIB
            owner = biggest.attr("process")
            says = f"{len(foreign)} processes of others are on the devices; {owner} holds {size:.1f} GiB."
        yield from emit("gpu.foreign_processes", len(foreign), says, events=_ids(foreign or shown))


def _start(events: EventTable) -> int | None:
    """Return the time of the job's first word: the earliest event that is not about the system."""
    times = [event.time for event in events.events if event.time is not None and event.kind in {"log", "exception"}]
    series = [name for name in events.metric_names if not name.startswith(("gpu_", "sm_clock", "power"))]
    first = [events.get(int(points.event_id[0])).time for name in series[:50] for points in events.all_metrics(name)]
    return min((time for time in (*times, *first) if time is not None), default=None)


def _foreign(events: EventTable, start: int | None) -> list[Event] | None:
    """Return the processes of others; None where it cannot be told whose they are.

    A process is somebody else's when the job's own out-of-memory message names its pid beside its own use, or when it
    holds much of a device before the job says its first word. Inside containers pids differ, so other pids prove
    nothing, and a table without processes on a filled device was printed inside one.
    """
    processes = [event for event in events.named("system.gpu_process") if event.attr("type") != "G"]
    if not processes:
        tables = [event for event in events.named("system.gpu") if event.attr("processes") is not None]
        filled = [event for event in tables if event.attr("memory_total_bytes") and _used_share(event) > _FILLED]
        return [] if tables and not filled else None
    named = {event.attr("other_pid") for event in events.of_kind("log") if event.attr("other_pid") is not None}
    told = [event for event in processes if event.attr("pid") in named]
    sizes = {event.attr("index"): event.attr("memory_total_bytes") for event in events.named("system.gpu")}
    early = [
        event
        for event in processes
        if start is not None
        and event.time is not None
        and event.time < start
        and int(event.attr("memory_bytes") or 0) > _MUCH * float(sizes.get(event.attr("gpu")) or math.inf)
    ]
    return told or early or _of_other_users(processes) or None


def _of_other_users(processes: Sequence[Event]) -> list[Event]:
    """Return the large processes of users who are on fewer devices than the one on most, where users are shown."""
    devices: dict[str, set[object]] = {}
    for event in processes:
        if event.attr("user") and int(event.attr("memory_bytes") or 0) >= _GIB:
            devices.setdefault(str(event.attr("user")), set()).add((event.host, event.attr("gpu")))
    most = max((len(used) for used in devices.values()), default=0)
    owners = [user for user, used in devices.items() if len(used) == most]
    if len(owners) != 1 or len(devices) < 2:
        return []
    others = devices.keys() - {owners[0]}
    return [
        event for event in processes if event.attr("user") in others and int(event.attr("memory_bytes") or 0) >= _GIB
    ]


def _used(event: Event) -> str:
    used, total = event.attr("memory_used_bytes") / _GIB, event.attr("memory_total_bytes") / _GIB
    return f"device {event.attr('index')} had {used:.1f} of {total:.1f} GiB in use."


def _used_share(event: Event) -> float:
    return float(event.attr("memory_used_bytes", 0)) / float(event.attr("memory_total_bytes"))


def _ids(events: Sequence[Event]) -> list[int]:
    return [event.event_id for event in events]


def idle_devices(events: EventTable) -> Iterator[Fact]:
    """Do the devices stand idle while the job trains? Only told of a job that neither failed nor finished."""
    devices = [event for event in events.named("system.gpu") if event.attr("memory_total_bytes")]
    if not devices or chronology(events).first is not None or finish_lines(events):
        return
    if not any(series.step is not None for series in events.all_metrics("loss")):
        return
    working = [event for event in events.named("system.gpu_process") if event.attr("type") != "G"]
    quiet = all(
        _used_share(event) < _IDLE_MEMORY and (event.attr("utilization") or 0) < _IDLE_PERCENT for event in devices
    )
    says = f"{len(devices)} devices show no process of the job and next to no memory in use while it trains."
    yield from emit("gpu.idle_beside_job", quiet and not working, says, events=_ids(devices))


def crash_places(events: EventTable) -> Iterator[Fact]:
    """In how many libraries did processes crash, by the kernel's log?"""
    crashes = events.named("kernel.segfault", kind="log")
    places = sorted({str(event.attr("library")) for event in crashes if event.attr("library")})
    if places:
        says = f"Processes crashed in {len(places)} libraries: {', '.join(places[:4])}."
        yield from emit("crash.places", len(places), says, events=_ids(crashes[:4]))


FACTS: tuple[FactFunction, ...] = (crash_places, idle_devices, file_systems, containers, host, device_memory)

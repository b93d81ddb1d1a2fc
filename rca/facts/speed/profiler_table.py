"""Shares of a torch.profiler table that was printed into a log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rca.events import Event, EventTable
from rca.facts.emit import emit, percent
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "profile.sync_share": "share of the CPU time in calls that wait for the device, from a printed profiler table",
    "profile.syncs": "number of those calls",
    "profile.launch_share": "share of the CPU time in kernel launches, from a printed profiler table",
    "profile.dataloader_share": "share of the CPU time in the data loader, from a printed profiler table",
    "profile.communication_share": "share of the device time in kernels of collectives, from a printed profiler table",
    "profile.device_share": "device time over CPU time of a printed profiler table",
}

_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,4})?)%")
_KERNEL = re.compile(r"kernel", re.I)


def printed(events: EventTable) -> Iterator[Fact]:
    """Read the shares of a profiler table that was printed into a log."""
    totals = [event.attr("seconds") for event in events.named("profiler.total_cpu")]
    whole = float(totals[-1]) if totals and totals[-1] else None
    for fact, signature, kind, words in (
        ("profile.sync_share", "profiler.op_sync", "total", "calls that wait for the device"),
        ("profile.launch_share", "profiler.op_launch", "self", "kernel launches"),
        ("profile.dataloader_share", "profiler.op_dataloader", "total", "the data loader"),
    ):
        rows = [
            (share, event) for event in events.named(signature) if (share := _share(event, kind, whole)) is not None
        ]
        if rows:
            # The rows are nested (aten::item holds the synchronisation), so the largest one stands for all.
            share, event = max(rows, key=lambda item: item[0])
            says = f"{percent(share)} of the CPU time is spent in {words}."
            yield from emit(fact, share, says, events=[event.event_id])
            calls = event.attr("calls")
            if fact == "profile.sync_share" and isinstance(calls, (int, float)):
                says = f"The host waits for the device in {int(calls)} calls."
                yield from emit("profile.syncs", int(calls), says, events=[event.event_id])
    host, device = events.named("profiler.total_cpu"), events.named("profiler.total_cuda")
    if host and device and host[-1].attr("seconds") and device[-1].attr("seconds") is not None:
        share = float(device[-1].attr("seconds")) / float(host[-1].attr("seconds"))
        says = f"The device works {percent(share)} of the profiled CPU time."
        yield from emit("profile.device_share", share, says, events=[host[-1].event_id, device[-1].event_id])


def _share(event: Event, kind: str, whole: float | None) -> float | None:
    """Return the row's share of the CPU time, from its percentage, else from its time: tables differ in columns."""
    told, time = event.attr(f"{kind}_share"), event.attr(f"{kind}_time")
    if isinstance(told, (int, float)):
        return min(float(told) / 100, 1.0)
    if isinstance(time, (int, float)) and whole:
        return min(float(time) / whole, 1.0)
    return None


def collectives(events: EventTable) -> Iterator[Fact]:
    """Which share of the device time do the kernels of collectives have?

    The last percentage of a row is that of the device; the rows of the host's calls hold the same work once more.
    """
    kernels = {
        str(event.attr("name")): (float(shares[-1]) / 100, event)
        for event in events.named("profiler.op_collective")
        if _KERNEL.search(str(event.attr("name"))) and (shares := _PERCENT.findall(str(event.attr("shares"))))
    }
    if kernels:
        share = min(sum(value for value, _event in kernels.values()), 1.0)
        says = f"{percent(share)} of the profiled device time is spent in collectives ({', '.join(list(kernels)[:2])})."
        yield from emit(
            "profile.communication_share", share, says, events=[event.event_id for _value, event in kernels.values()]
        )


FACTS: tuple[FactFunction, ...] = (printed, collectives)

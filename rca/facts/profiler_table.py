"""Shares of a torch.profiler table that was printed into a log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rca.events import EventTable
from rca.facts.emit import emit, percent
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "profile.sync_share": "share of the CPU time in calls that wait for the device, from a printed profiler table",
    "profile.syncs": "number of those calls",
    "profile.launch_share": "share of the CPU time in kernel launches, from a printed profiler table",
    "profile.dataloader_share": "share of the CPU time in the data loader, from a printed profiler table",
    "profile.device_share": "device time over CPU time of a printed profiler table",
}


def printed(events: EventTable) -> Iterator[Fact]:
    """Read the shares of a profiler table that was printed into a log."""
    for fact, signature, column, words in (
        ("profile.sync_share", "profiler.op_sync", "total_share", "calls that wait for the device"),
        ("profile.launch_share", "profiler.op_launch", "self_share", "kernel launches"),
        ("profile.dataloader_share", "profiler.op_dataloader", "total_share", "the data loader"),
    ):
        rows = [event for event in events.named(signature) if isinstance(event.attr(column), (int, float))]
        if rows:
            # The rows are nested (aten::item holds the synchronisation), so the largest one stands for all.
            event = max(rows, key=lambda item: float(item.attr(column)))
            share = min(float(event.attr(column)) / 100, 1.0)
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


FACTS: tuple[FactFunction, ...] = (printed,)

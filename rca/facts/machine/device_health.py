"""The state of the devices and of what joins them: memory errors, rows that were remapped, links, the fabric."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from rca.events import Event, EventTable
from rca.facts.emit import emit, number
from rca.facts.interface import Fact, FactFunction
from rca.facts.machine.device_readings import Readings, readings

CATALOGUE: Mapping[str, str] = {
    "gpu.ecc_uncorrected": "memory errors of a device that could not be corrected, since its driver was loaded",
    "gpu.ecc_device": "device with these errors",
    "gpu.remapping": "what the device says of its row remapping: failed or pending",
    "gpu.retired_pages": "memory pages that a device retired for errors that could not be corrected",
    "gpu.xid": "last Xid that a monitor read from a device",
    "gpu.xid_device": "device with that Xid",
    "gpu.reset_required": "device that says it must be reset",
    "gpu.nvlink_down": "NVLink links that are inactive on one device and active on the others",
    "gpu.nvlink_errors": "errors that the NVLink links of the worst device repeated or recovered from",
    "gpu.pcie_degraded": "device whose PCIe link is narrower or slower than those of the other devices",
    "gpu.pcie_link": "PCIe link of that device and what it could be",
    "gpu.fabric_state": "state of the NVLink fabric of a device, where it is not ready",
    "gpu.mig": "the devices are cut into MIG instances",
    "gpu.mig_memory_gib": "memory of the smallest MIG instance (GiB)",
}

BUSY = 50.0
"""Percent; below it a device lets its PCIe link fall back to save power, so its speed says nothing."""
_READY = frozenset({"completed", "n/a", "not supported", "none"})


def _last(item: Readings) -> float:
    return float(item.value[-1])


def _worst(found: list[Readings], of: Callable[[Readings], float] = _last) -> Readings | None:
    return max(found, key=of) if found else None


def memory_errors(events: EventTable) -> Iterator[Fact]:
    """Does a device have memory errors that it could not correct?"""
    found = [*readings(events, "ecc_uncorrected"), *readings(events, "ecc_uncorrected_dram")]
    worst = _worst(found)
    if worst is not None:
        count = int(_last(worst))
        who = f"{worst.named} has" if count else "No device has"
        says = f"{who} {count or ''} memory errors that could not be corrected.".replace("  ", " ")
        seen = worst.event_id[-1:]
        yield from emit("gpu.ecc_uncorrected", count, says, events=seen)
        if count:
            yield from emit("gpu.ecc_device", worst.named, says, events=seen)
    for state, name in (("failed", "remap_failed"), ("pending", "remap_pending")):
        flagged = [item for item in readings(events, name) if _last(item) >= 1]
        if flagged:
            says = f"{flagged[0].named}: remapping of a memory row is {state}."
            yield from emit("gpu.remapping", state, says, events=flagged[0].event_id[-1:])
            break
    retired = _worst(readings(events, "retired_pages"))
    if retired is not None:
        says = f"{retired.named} retired {_last(retired):.0f} pages of its memory."
        yield from emit("gpu.retired_pages", int(_last(retired)), says, events=retired.event_id[-1:])


def faults(events: EventTable) -> Iterator[Fact]:
    """Does a device report a fault or ask for a reset?"""
    flagged = [item for item in readings(events, "gpu_xid") if _last(item) > 0]
    if flagged:
        item = flagged[0]
        xid = int(_last(item))
        says = f"A monitor read Xid {xid} from {item.named}."
        seen = item.event_id[np.flatnonzero(item.value > 0)[:1]]
        yield from emit("gpu.xid", xid, says, events=seen)
        yield from emit("gpu.xid_device", item.named, says, events=seen)
    reset = [item for item in readings(events, "reset_required") if _last(item) >= 1]
    if reset:
        says = f"{reset[0].named} says that it must be reset."
        yield from emit("gpu.reset_required", reset[0].named, says, events=reset[0].event_id[-1:])


def nvlink(events: EventTable) -> Iterator[Fact]:
    """Are links between devices down, and do they count errors?"""
    shown = events.named("system.nvlink", kind="system")
    counted = [event for event in shown if event.attr("active") is not None]
    if len(counted) > 1:
        most = max(int(event.attr("active")) for event in counted)
        fewest = min(counted, key=lambda event: int(event.attr("active")))
        down = most - int(fewest.attr("active"))
        says = f"{_gpu(fewest)} has {down} NVLink links fewer than the others."
        yield from emit("gpu.nvlink_down", down, says, events=[fewest.event_id])
    elif counted and not int(counted[0].attr("active")):
        says = f"All NVLink links of {_gpu(counted[0])} are inactive."
        yield from emit("gpu.nvlink_down", int(counted[0].attr("inactive")), says, events=[counted[0].event_id])
    faulty = [event for event in shown if event.attr("replay_errors") is not None]
    counts = {event.event_id: _repeated(event) for event in faulty}
    if faulty:
        worst = max(faulty, key=lambda event: counts[event.event_id])
        says = f"The NVLink links of {_gpu(worst)} repeated or recovered {counts[worst.event_id]} times."
        yield from emit("gpu.nvlink_errors", counts[worst.event_id], says, events=[worst.event_id])
        return
    monitored = _worst(readings(events, "nvlink_errors"))
    if monitored is not None:
        says = f"The NVLink links of {monitored.named} repeated or recovered {_last(monitored):.0f} times."
        yield from emit("gpu.nvlink_errors", int(_last(monitored)), says, events=monitored.event_id[-1:])


def _gpu(event: Event) -> str:
    host = f" of {event.host}" if event.host else ""
    return f"GPU {event.attr('gpu')}{host}" if event.attr("gpu") is not None else "a GPU"


def _repeated(event: Event) -> int:
    return int(event.attr("replay_errors", 0) or 0) + int(event.attr("recovery_errors", 0) or 0)


def pcie(events: EventTable) -> Iterator[Fact]:
    """Is the bus of one device narrower or slower than that of the others? A slot that is narrow by design is not."""
    busy = {item.device: item.value for item in readings(events, "gpu_utilization")}
    links: dict[str, dict[str, float]] = {}
    owners: dict[str, Readings] = {}
    for name in ("pcie_width", "pcie_width_max", "pcie_generation", "pcie_generation_max"):
        for item in readings(events, name):
            values = item.value
            use = busy.get(item.device)
            if name == "pcie_generation":
                values = values[use >= BUSY] if use is not None and len(use) == len(values) else values[:0]
            if len(values):
                links.setdefault(item.device, {})[name] = float(np.median(values))
                owners.setdefault(item.device, item)
    if len(links) < 2:
        return
    shares = {device: _share(link) for device, link in links.items()}
    usual = float(np.median(list(shares.values())))
    worst = min(shares, key=lambda device: (shares[device], device))
    if usual < 1 or shares[worst] >= 1:
        return
    link, item = links[worst], owners[worst]
    words = f"{_link(link, '')} of {_link(link, '_max')}"
    says = f"The PCIe link of {item.named} runs at {words}, those of the other devices at full speed."
    yield from emit("gpu.pcie_degraded", item.named, says, events=item.event_id[-1:])
    yield from emit("gpu.pcie_link", words, says, events=item.event_id[-1:])


def _share(link: Mapping[str, float]) -> float:
    """Return the speed of a link as a share of what it could be; a generation has twice the speed of the one before."""
    share = 1.0
    if link.get("pcie_width_max") and link.get("pcie_width"):
        share *= link["pcie_width"] / link["pcie_width_max"]
    if link.get("pcie_generation_max") and link.get("pcie_generation"):
        share *= 2.0 ** (link["pcie_generation"] - link["pcie_generation_max"])
    return min(share, 1.0)


def _link(link: Mapping[str, float], end: str) -> str:
    parts = []
    if f"pcie_generation{end}" in link and "pcie_generation" in link:
        parts.append(f"generation {link[f'pcie_generation{end}']:.0f}")
    if f"pcie_width{end}" in link:
        parts.append(f"x{link[f'pcie_width{end}']:.0f}")
    return " ".join(parts)


def fabric(events: EventTable) -> Iterator[Fact]:
    """Is the fabric between the devices ready, and are devices cut into slices?"""
    shown = events.named("system.gpu", kind="system")
    states = [event for event in shown if event.attr("fabric_state")]
    late = [event for event in states if str(event.attr("fabric_state")).strip().lower() not in _READY]
    if late:
        state = str(late[0].attr("fabric_state"))
        says = f"The NVLink fabric of GPU {late[0].attr('index')} is not ready: {state}."
        yield from emit("gpu.fabric_state", state, says, events=[late[0].event_id])
    slices = events.named("system.mig_device", kind="system")
    modes: list[Any] = [str(event.attr("mig")).lower() for event in shown if event.attr("mig")]
    if slices or modes:
        on = bool(slices) or "enabled" in modes
        says = f"The devices are {'' if on else 'not '}cut into MIG instances."
        yield from emit("gpu.mig", on, says, events=[event.event_id for event in slices[:3]])
    sizes = [event for event in slices if event.attr("memory_total_bytes")]
    if sizes:
        smallest = min(sizes, key=lambda event: int(event.attr("memory_total_bytes")))
        size = int(smallest.attr("memory_total_bytes")) / 1024**3
        says = f"The smallest MIG instance has {number(size)} GiB."
        yield from emit("gpu.mig_memory_gib", round(size, 2), says, unit="GiB", events=[smallest.event_id])


FACTS: tuple[FactFunction, ...] = (memory_errors, faults, nvlink, pcie, fabric)

"""The device that stands out among those that do the same work: by its clock, its heat or its power."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.machine.device_readings import Readings, readings

CATALOGUE: Mapping[str, str] = {
    "gpu.slowest_clock_device": "device whose SM clock is well below that of the others while all are busy",
    "gpu.slowest_clock_share": "SM clock of that device over the median of the others",
    "gpu.hottest_device": "device that is much hotter than the others",
    "gpu.hotter_by": "temperature of that device less the median of the others (K)",
    "gpu.device_count_seen": "devices whose readings are compared",
}

BUSY = 50.0
MIN_DEVICES = 2
SLOW = 0.9
"""Boost clocks of devices of one kind differ by a few per cent with their silicon; a tenth is more than that."""
HOT = 12.0
"""Kelvin. Devices at the end of an air stream are some degrees hotter than those at its start."""


def _while_busy(events: EventTable, name: str) -> dict[str, tuple[float, Readings]]:
    """Return the median of a quantity by device while the device was busy; all of it where no use was read."""
    use = {item.device: item.value for item in readings(events, "gpu_utilization")}
    found: dict[str, tuple[float, Readings]] = {}
    for item in readings(events, name):
        values = item.value
        if (busy := use.get(item.device)) is not None:
            values = (
                values[busy >= BUSY] if len(busy) == len(values) else values[: 0 if np.median(busy) < BUSY else None]
            )
        if len(values):
            found[item.device] = (float(np.median(values)), item)
    return found


def clock(events: EventTable) -> Iterator[Fact]:
    """Does one device run at a lower clock than the others?"""
    found = _while_busy(events, "sm_clock")
    if len(found) < MIN_DEVICES:
        return
    slowest = min(found, key=lambda device: (found[device][0], device))
    others = float(np.median([value for device, (value, _item) in found.items() if device != slowest]))
    value, item = found[slowest]
    says = f"The clocks of {len(found)} busy devices are alike."
    if others > 0 and value / others <= SLOW:
        share = percent(value / others)
        says = f"{item.named} runs at {number(value)} MHz, {share} of the {number(others)} MHz of the others."
        yield from emit("gpu.slowest_clock_device", item.named, says, events=item.event_id[:3])
    yield from emit("gpu.device_count_seen", len(found), says, events=item.event_id[:1])
    if others > 0:
        yield from emit("gpu.slowest_clock_share", round(min(value / others, 1.0), 4), says, events=item.event_id[:3])


def heat(events: EventTable) -> Iterator[Fact]:
    """Is one device much hotter than the others?"""
    found = _while_busy(events, "gpu_temperature")
    if len(found) < MIN_DEVICES:
        return
    hottest = max(found, key=lambda device: (found[device][0], device))
    others = float(np.median([value for device, (value, _item) in found.items() if device != hottest]))
    value, item = found[hottest]
    if value - others >= HOT:
        says = f"{item.named} is at {value:.0f} degrees Celsius, the others at {others:.0f}."
        yield from emit("gpu.hottest_device", item.named, says, events=item.event_id[-3:])
        yield from emit("gpu.hotter_by", value - others, says, unit="K", events=item.event_id[-3:])


FACTS: tuple[FactFunction, ...] = (clock, heat)

"""What the devices themselves reported: utilization, temperature, clocks, power, and why clocks were held down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rca.events import Event, EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.machine.device_readings import Readings, readings
from rca.facts.robust import spearman
from rca.facts.training.curves import curves

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

CATALOGUE: Mapping[str, str] = {
    "gpu.pcie_gb_s": "mean traffic of a device over its bus, both ways (GB/s)",
    "gpu.utilization_mean": "mean utilization over the readings of all devices (%)",
    "gpu.utilization_low_share": "share of the readings with less than 50 % utilization",
    "gpu.utilization_spread": "mean utilization of the busiest device less that of the idlest (%)",
    "gpu.utilization_idlest": "device with the lowest mean utilization",
    "gpu.temperature_max": "highest device temperature (degrees Celsius)",
    "gpu.temperature_rise": "temperature at the end of the readings less that at their beginning (degrees Celsius)",
    "gpu.clock_drop": "share by which the SM clock of the worst device fell below that of its first readings",
    "gpu.clock_of_max": "SM clock of the busy devices over the highest clock they have (median)",
    "gpu.clock_throughput_correlation": "rank correlation of SM clock and throughput over time",
    "gpu.power_capped": "the devices run at their power limit, or say that it holds the clock down",
    "gpu.throttle_reason": "why the clock was held down: the most serious reason that a device gave",
    "gpu.throttle_share": "share of the readings in which a device gave that reason",
}

LOW = 50.0
"""Percent; utilization below this is called low by torch-tb-profiler and by the guides this field follows."""
BUSY = 50.0
EDGE = 0.2
MIN_READINGS = 3
"""Readings of a device below which they are a snapshot, often taken after the failure."""
MIN_TREND = 5
AT_LIMIT = 0.97
SERIOUS = ("hw_thermal_slowdown", "hw_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")
"""Reasons that hold clocks down against the wish of the user, most serious first (NVML, nvmlClocksEventReasons)."""
POWER_CAP = "sw_power_cap"
SLOWED = 0.15
"""Loss of clock from which the power cap is a reason to tell: boost clocks vary by a tenth in ordinary use."""


def utilization(events: EventTable) -> Iterator[Fact]:
    """How busy are the devices, and are they equally busy?"""
    devices = readings(events, "gpu_utilization")
    watched = [item for item in devices if len(item.value) >= MIN_READINGS]
    if watched:
        every = np.concatenate([item.value for item in watched])
        ids = [int(item.event_id[np.argmin(item.value)]) for item in watched]
        mean, low = float(np.mean(every)), float(np.mean(every < LOW))
        says = f"The mean utilization is {mean:.0f} % over {len(every)} readings of {len(watched)} devices."
        yield from emit("gpu.utilization_mean", mean, says, unit="%", events=ids)
        says = f"{percent(low)} of the readings are below {LOW:g} %."
        yield from emit("gpu.utilization_low_share", low, says, events=ids)
    means = [float(np.mean(item.value)) for item in devices]
    # Even a snapshot tells an idle device among busy ones; where all are idle, the job had ended.
    if len(devices) > 1 and max(means) >= BUSY:
        idlest = int(np.argmin(means))
        one = devices[idlest]
        says = f"Device {one.device} is used {means[idlest]:.0f} %, the busiest one {max(means):.0f} %."
        yield from emit("gpu.utilization_spread", max(means) - means[idlest], says, unit="%", events=one.event_id[:1])
        yield from emit("gpu.utilization_idlest", one.device, says, events=one.event_id[:1])


def temperature(events: EventTable) -> Iterator[Fact]:
    """How hot are the devices?"""
    devices = readings(events, "gpu_temperature")
    tops = [(float(item.value.max()), int(item.event_id[np.argmax(item.value)])) for item in devices]
    if not tops:
        return
    hottest, event_id = max(tops)
    says = f"The hottest reading of a device is {hottest:.0f} degrees Celsius."
    yield from emit("gpu.temperature_max", hottest, says, unit="°C", events=[event_id])
    rises = [(edges[1] - edges[0], item) for item in devices if (edges := _edges(item.value)) is not None]
    if rises:
        rise, item = max(rises, key=lambda pair: pair[0])
        says = f"Device {item.device} became {rise:.0f} degrees warmer over the readings."
        yield from emit("gpu.temperature_rise", rise, says, unit="K", events=[item.event_id[-1]])


def clocks(events: EventTable) -> Iterator[Fact]:
    """Do the clocks fall, and does throughput follow them?"""
    devices = readings(events, "sm_clock")
    drops = [
        (1 - edges[1] / edges[0], edges, item)
        for item in devices
        if (edges := _edges(item.value)) is not None and edges[0] > 0
    ]
    if drops:
        drop, edges, item = max(drops, key=lambda entry: entry[0])
        says = f"The SM clock of device {item.device} goes from {edges[0]:.0f} to {edges[1]:.0f} MHz."
        yield from emit("gpu.clock_drop", max(drop, 0.0), says, events=[item.event_id[0], item.event_id[-1]])
    yield from _clock_of_max(events, devices)
    yield from _follows(events, devices)


def _clock_of_max(events: EventTable, devices: list[Readings]) -> Iterator[Fact]:
    limits = {item.device: float(item.value.max()) for item in readings(events, "sm_clock_max")}
    busy = {item.device: item.value for item in readings(events, "gpu_utilization")}
    shares, ids = [], []
    for item in devices:
        use = busy.get(item.device)
        if limits.get(item.device, 0) > 0 and use is not None and len(use) == len(item.value):
            where = use >= BUSY
            shares += (item.value[where] / limits[item.device]).tolist()
            ids += item.event_id[where][:1].tolist()
    if shares:
        share = float(np.median(shares))
        says = f"While busy, the devices run at {percent(share)} of their highest SM clock."
        yield from emit("gpu.clock_of_max", share, says, events=ids)


def _follows(events: EventTable, devices: list[Readings]) -> Iterator[Fact]:
    """Compare clock and throughput at the times of the readings, both as they change over the run."""
    lines = [item for item in curves(events, "throughput") if len(item) >= MIN_TREND]
    timed = [item for item in devices if len(item.value) >= MIN_TREND and np.isfinite(item.time).all()]
    if not lines or not timed:
        return
    line = max(lines, key=len)
    stamps = events.table["time"].cast(pa.int64()).take(pa.array(line.event_id)).cast(pa.float64(), safe=False)
    time = stamps.fill_null(np.nan).to_numpy()
    good = np.isfinite(time) & line.finite
    if np.count_nonzero(good) < MIN_TREND:
        return
    time, rate = time[good], line.value[good]
    order = np.argsort(time, kind="stable")
    found = []
    for item in timed:
        inside = (item.time >= time.min()) & (item.time <= time.max())
        if np.count_nonzero(inside) >= MIN_TREND:
            found.append(spearman(item.value[inside], np.interp(item.time[inside], time[order], rate[order])))
    if found:
        together = float(np.median(found))
        says = f"SM clock and throughput move together with a rank correlation of {number(together)}."
        yield from emit("gpu.clock_throughput_correlation", together, says)


def _edges(values: Floats) -> tuple[float, float] | None:
    """Return the medians of the first and the last fifth of the readings."""
    if len(values) < MIN_TREND:
        return None
    width = max(1, round(EDGE * len(values)))
    return float(np.median(values[:width])), float(np.median(values[-width:]))


def throttling(events: EventTable) -> Iterator[Fact]:
    """Which reasons did the devices give for lower clocks?"""
    given = [event for event in events.named("system.throttle") if _reason(event) in {*SERIOUS, POWER_CAP}]
    capped = [event for event in given if _reason(event) == POWER_CAP]
    at_limit = _at_power_limit(events)
    if capped or at_limit is not None:
        flag = bool(capped) or bool(at_limit)
        says = "The devices run at their power limit." if flag else "The devices stay below their power limit."
        yield from emit("gpu.power_capped", flag, says, events=[event.event_id for event in capped])
    if not _slowed(events):
        given = [event for event in given if event not in capped]
    if not given:
        return
    reason = min((_reason(event) for event in given), key=(*SERIOUS, POWER_CAP).index)
    those = [event for event in given if _reason(event) == reason]
    words = reason.replace("_", " ")
    says = f"A device gave {words} as the reason for a lower clock."
    yield from emit("gpu.throttle_reason", reason, says, events=[event.event_id for event in those])
    share = max(event.value or 0.0 for event in those)
    says = f"{words.capitalize()} was active in {percent(share)} of the readings of a device."
    yield from emit("gpu.throttle_share", share, says, events=[event.event_id for event in those])


def _slowed(events: EventTable) -> bool:
    """Say whether clocks are really low: every device that is well used meets its power cap at nearly full clock."""
    found = {fact.name: float(fact.value) for fact in clocks(events)}
    return found.get("gpu.clock_drop", 0.0) >= SLOWED or found.get("gpu.clock_of_max", 1.0) <= 1 - SLOWED


def _reason(event: Event) -> str:
    return str(event.attr("reason", "")).strip().lower().replace(" ", "_").replace("-", "_")


def _at_power_limit(events: EventTable) -> bool | None:
    """Say whether most readings are at the limit; None where power or limit was not read."""
    limits = {item.device: item.value for item in readings(events, "power_limit")}
    shares = []
    for item in readings(events, "power"):
        limit = limits.get(item.device)
        if limit is not None and len(limit) == len(item.value) and (limit > 0).all():
            shares += (item.value / limit >= AT_LIMIT).tolist()
    return None if len(shares) < MIN_READINGS else bool(np.mean(shares) >= 0.5)


def bus(events: EventTable) -> Iterator[Fact]:
    """How much do the devices move over PCIe? `nvidia-smi dmon` prints MB a second."""
    rates = [float(np.mean(item.value)) for name in ("pcie_rx", "pcie_tx") for item in readings(events, name)]
    if rates:
        both = 2 * float(np.mean(rates)) / 1000
        shown = readings(events, "pcie_rx") or readings(events, "pcie_tx")
        says = f"A device moves {number(both)} GB a second over PCIe in the mean."
        yield from emit("gpu.pcie_gb_s", round(both, 3), says, unit="GB/s", events=shown[0].event_id[:2])


FACTS: tuple[FactFunction, ...] = (bus, utilization, temperature, clocks, throttling)

"""Host memory of the job over time: does it grow, and how full was the host at the end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.memory.device_memory import CORRELATION, GROWTH, grown, settled
from rca.facts.training.curves import Curve, curves

CATALOGUE: Mapping[str, str] = {
    "memory.host_rss_growth": "growth of the host memory of the process over its first level",
    "memory.host_grows": "host memory grew by 20 % or more, steadily, to the end",
    "memory.host_last_share": "last reported host memory over the memory of the host, the container or the request",
}

_NAME = re.compile(
    r"(?:^|[_./ -])(?:rss|ram|sysmem|(?:host|cpu|sys|system|virtual)[_ ./]?mem(?:ory)?)(?:$|[_./ -])", re.I
)
"""Names of host memory as programs print them; only whole words count."""
_UNITS = {"gb": 1.0, "gib": 1.0, "mb": 2**-10, "mib": 2**-10, "kb": 2**-20, "kib": 2**-20, "tb": 2**10, "tib": 2**10}


def host_curves(events: EventTable) -> list[Curve]:
    """Return the curves of host memory, each as its rank reported it."""
    names = [name for name in events.metric_names if _NAME.search(name) and "gpu" not in name and "cuda" not in name]
    return [line for name in names for line in curves(events, name) if line.finite.any()]


def is_share(line: Curve) -> bool:
    """Say whether the curve is in percent of the host."""
    return line.unit == "%" or line.name.endswith(("%", "percent", "pct", "percentage"))


def growth(events: EventTable) -> Iterator[Fact]:
    """Does the host memory grow?"""
    found = [(line, item) for line in host_curves(events) if (item := settled(line)) is not None]
    if not found:
        return
    line, steady = max(found, key=lambda pair: grown(pair[1])[0])
    share, correlation, still = grown(steady)
    unit = f" {line.unit}" if line.unit else ""
    says = (
        f"Host memory went from {number(float(steady.value[0]))}{unit} to {number(float(steady.value[-1]))}{unit}"
        f"{line.where()}: {percent(max(share, 0.0))} more."
    )
    seen = steady.event_id[[0, len(steady) - 1]]
    yield from emit("memory.host_rss_growth", share, says, events=seen)
    yield from emit("memory.host_grows", share >= GROWTH and correlation > CORRELATION and still, says, events=seen)


def fullness(events: EventTable) -> Iterator[Fact]:
    """How full was the host at the end?"""
    found = host_curves(events)
    shares = [line for line in found if is_share(line)]
    if shares:
        line = max(shares, key=lambda item: float(item.value[item.finite][-1]))
        good = line.pick(line.finite)
        says = f"The last report of {line.name} is {number(float(good.value[-1]))} %{line.where()}."
        yield from emit("memory.host_last_share", float(good.value[-1]) / 100, says, events=good.event_id[-1:])
        return
    total = total_gib(events)
    sizes = [line for line in found if line.unit.lower() in _UNITS]
    if total is None or not sizes:
        return
    line = max(sizes, key=lambda item: float(item.value[item.finite][-1]) * _UNITS[item.unit.lower()])
    good = line.pick(line.finite)
    last = float(good.value[-1]) * _UNITS[line.unit.lower()]
    says = f"The last report of {line.name} is {number(last)} of {number(total)} GiB{line.where()}."
    yield from emit("memory.host_last_share", last / total, says, events=good.event_id[-1:])


def total_gib(events: EventTable) -> float | None:
    """Return the memory that the job may use: of its container, else of the host."""
    limits = [event.attr("memory_limit_bytes") for event in events.named("system.container")]
    totals = [event.attr("total_bytes") for event in events.named("system.memory")]
    for sizes in (limits, totals):
        known = [float(size) for size in sizes if isinstance(size, (int, float)) and size > 0]
        if known:
            return min(known) / 2**30
    return None


FACTS: tuple[FactFunction, ...] = (growth, fullness)

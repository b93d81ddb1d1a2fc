"""Memory over time: does it grow, what filled the device, was the last batch out of the ordinary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.memory.allocator_message import refusals
from rca.facts.robust import running_median, slope_t, spearman
from rca.facts.training.curves import Curve, config_number, curves

CATALOGUE: Mapping[str, str] = {
    "memory.first_gib": "first reported device memory of the process (GiB)",
    "memory.last_gib": "last reported device memory of the process (GiB)",
    "memory.peak_gib": "largest reported device memory of the process (GiB)",
    "memory.growth_gib_per_step": "slope of the device memory after the first tenth of the run (GiB a step)",
    "memory.growth_share": "growth over the first level, after the first tenth of the run",
    "memory.grows": "memory grew by 20 % or more, rank correlation with the step above 0.8, and no plateau at the end; "
    "or by 5 % or more along a line: at least 30 reports, correlation above 0.98",
    "memory.steps_to_full": "steps until the device is full at that slope (step)",
    "memory.reserved_growth_share": "growth of the reserved memory over its first level",
    "memory.reserved_grows": "reserved memory grows while allocated memory does not: pieces that no longer fit",
    "memory.batch": "micro batch at the failure, as configured",
    "memory.seq_outlier": "sequence length at the failure over the median before (x)",
    "memory.seq_at_failure": "sequence length at the failure (tokens)",
}

GROWTH = 0.2
CORRELATION = 0.8
"""A leak is +20 % with a rank correlation above 0.8 (FACTS 4, runmedic)."""
SLOW_GROWTH = 0.05
ALONG_A_LINE = 0.98
LONG = 30
"""A slow leak beside large weights is a few percent of the level, but rises at every report; other load varies."""


def settled(line: Curve) -> Curve | None:
    """Return the points behind the first tenth, in which buffers, caches and optimizer states are still being made."""
    good = line.pick(line.finite & (line.value > 0))
    skip = max(1, len(good) // 10)
    return good.pick(slice(skip, None)) if len(good) - skip >= 5 else None


def grown(line: Curve) -> tuple[float, float, bool]:
    """Return growth over the first level, rank correlation with the order, and whether the end still grows."""
    head = float(np.median(line.value[: max(1, len(line) // 10)]))
    tail = float(np.median(line.value[-max(1, len(line) // 10) :]))
    smooth = running_median(line.value, 5)
    third = max(3, len(line) // 3)
    last, before = smooth[-third:], smooth[:-third]
    late = float(last[-1] - last[0])
    average = max(float(before[-1] - before[0]), 0.0) / max(len(before), 1) * third if len(before) else 0.0
    return tail / head - 1, spearman(np.arange(len(line), dtype=float), smooth), late > 0.3 * average and late > 0


def device(events: EventTable) -> Iterator[Fact]:
    """Does the device memory of the process grow?"""
    lines = [item for item in curves(events, "memory_allocated") if item.finite.any()]
    if not lines:
        return
    growing = [(line, grown(steady)) for line in lines if (steady := settled(line)) is not None]
    line = max(growing, key=lambda pair: pair[1][0])[0] if growing else max(lines, key=len)
    good = line.pick(line.finite)
    top = int(np.argmax(good.value))
    for name, index, words in (("first", 0, "first"), ("last", -1, "last"), ("peak", top, "largest")):
        value = float(good.value[index])
        says = f"The {words} reported device memory is {number(value)} GiB at {good.place(index)}{good.where()}."
        yield from emit(f"memory.{name}_gib", value, says, unit="GiB", events=good.event_id[[index]])
    if not growing:
        return
    steady = settled(line)
    if steady is None:
        return
    growth, correlation, still = grown(steady)
    seen = steady.event_id[[0, len(steady) - 1]]
    says = (
        f"Device memory went from {number(float(steady.value[0]))} to {number(float(steady.value[-1]))} GiB over "
        f"{len(steady)} reports{steady.where()}: {percent(max(growth, 0.0))} more, rank correlation "
        f"{number(correlation)}."
    )
    yield from emit("memory.growth_share", growth, says, events=seen)
    slow = growth >= SLOW_GROWTH and correlation > ALONG_A_LINE and len(steady) >= LONG
    grows = still and ((growth >= GROWTH and correlation > CORRELATION) or slow)
    yield from emit("memory.grows", grows, says, events=seen)
    yield from _slope(events, steady, grows=grows)


def _slope(events: EventTable, line: Curve, *, grows: bool) -> Iterator[Fact]:
    slope, _ = slope_t(line.value)
    gaps = np.diff(line.step)
    gaps = gaps[np.isfinite(gaps) & (gaps > 0)]
    a_step = slope / float(np.median(gaps)) if len(gaps) else slope
    unit = "GiB/step" if len(gaps) else "GiB/report"
    says = f"Device memory changes by {number(a_step)} {unit}."
    yield from emit("memory.growth_gib_per_step", a_step, says, unit=unit, events=line.event_id[-1:])
    capacity = capacity_gib(events)
    if grows and capacity is not None and a_step > 0:
        left = max(capacity - float(line.value[-1]), 0.0) / a_step
        says = (
            f"At that slope the {number(capacity)} GiB of the device are full {number(left)} steps after the "
            f"last report."
        )
        yield from emit("memory.steps_to_full", left, says, unit="step", events=line.event_id[-1:])


def capacity_gib(events: EventTable) -> float | None:
    """Return the memory of one device: from an out-of-memory message, else from the listed devices."""
    named = [item.capacity for item in refusals(events) if item.capacity]
    if named:
        return named[0] / 2**30
    sizes = [event.attr("memory_total_bytes") for event in events.named("system.gpu")]
    known = [float(size) for size in sizes if isinstance(size, (int, float)) and size > 0]
    return min(known) / 2**30 if known else None


def reserved(events: EventTable) -> Iterator[Fact]:
    """Does the allocator hold more and more that it does not use?"""
    held = max(curves(events, "memory_reserved"), key=len, default=None)
    steady = settled(held) if held is not None else None
    if steady is None:
        return
    growth, correlation, still = grown(steady)
    says = f"Reserved memory went from {number(float(steady.value[0]))} to {number(float(steady.value[-1]))} GiB"
    seen = steady.event_id[[0, len(steady) - 1]]
    yield from emit("memory.reserved_growth_share", growth, says + ".", events=seen)
    used = max(curves(events, "memory_allocated"), key=len, default=None)
    inner = settled(used) if used is not None else None
    if inner is None:
        return
    inner_growth = grown(inner)[0]
    apart = growth >= GROWTH and correlation > CORRELATION and still and inner_growth < 0.5 * growth
    says += f", allocated memory from {number(float(inner.value[0]))} to {number(float(inner.value[-1]))} GiB."
    yield from emit("memory.reserved_grows", apart, says, events=seen)


def batch(events: EventTable) -> Iterator[Fact]:
    """Was the batch that failed larger or longer than the others?"""
    size = config_number(events, "batch_size")
    if size is not None and size >= 1:
        setting = events.config("batch_size")
        seen = [setting.event_id] if setting is not None else []
        yield from emit("memory.batch", int(size), f"The micro batch is {number(size)} samples.", events=seen)
    lines = [item for item in curves(events, "sequence_length") if item.finite.sum() >= 5]
    if not lines:
        return
    refused = refusals(events)
    ranks = {item.event.rank for item in refused}
    line = next((item for item in lines if item.rank in ranks and item.rank is not None), max(lines, key=len))
    good = line.pick(line.finite)
    last, median = float(good.value[-1]), float(np.median(good.value[:-1]))
    if median <= 0:
        return
    says = f"The last reported sequence length is {number(last)} tokens; the median before is {number(median)}."
    yield from emit("memory.seq_at_failure", last, says, unit="tokens", events=good.event_id[-1:])
    yield from emit("memory.seq_outlier", last / median, says, unit="x", events=good.event_id[-1:])


FACTS: tuple[FactFunction, ...] = (device, reserved, batch)

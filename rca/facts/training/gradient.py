"""The gradient norm: how large, how steady, and what it did before the trouble."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.robust import runs
from rca.facts.training.curves import Curve, config_number, curve
from rca.facts.training.onset import before_onset

CATALOGUE: Mapping[str, str] = {
    "grad_norm.points": "number of logged gradient norms",
    "grad_norm.first": "first finite gradient norm",
    "grad_norm.last": "last finite gradient norm",
    "grad_norm.median": "median gradient norm before the trouble",
    "grad_norm.max": "largest finite gradient norm",
    "grad_norm.max_over_median": "largest over median gradient norm, the first three points left out (x)",
    "grad_norm.over_100": "a gradient norm above 100 that is also 5 times its median",
    "grad_norm.nan_step": "first step of a non-finite gradient norm (of the stretch that lasts to the end, if any)",
    "grad_norm.nan_share": "share of gradient norms that are not finite",
    "grad_norm.nan_isolated": "non-finite gradient norms are followed by finite ones and the run ends finite",
    "grad_norm.zero_share": "share of gradient norms that are exactly 0",
    "grad_norm.rising": "the norm grew at least tenfold over the last finite points before the trouble or the end",
    "grad_norm.growth": "that growth: last over the median of the points before (x)",
    "grad_norm.spike_step": "step of the largest norm when it is more than 10 times the median",
    "grad_norm.spikes": "number of stretches above 10 times the median",
    "grad_norm.clipped_share": "share of norms above the configured clipping threshold",
    "grad_norm.tiny": "the median norm is nearly zero (below 1e-7, or below 1e-5 for every point)",
    "grad_norm.falling": "the norm fell a thousandfold or more from its early level and stayed there",
}

EXPLOSION = 10.0
"""Ten times the median is an explosion (FACTS 4, runmedic)."""
LARGE = 100.0
"""Field guide C1: a norm above 100 is large for common losses; not alone, as some losses are sums."""
VANISHED = 1e-7
"""SageMaker's VanishingGradient (FACTS 4); AutoTrainer looks at norms below 1e-4 together with a ratio."""


def levels(events: EventTable) -> Iterator[Fact]:
    """How large is the gradient norm, and how far does it get from its usual size?"""
    line = curve(events, "grad_norm")
    if line is None:
        return
    yield from emit("grad_norm.points", len(line), f"{len(line)} gradient norms were logged.", events=line.event_id[:1])
    zero = line.value == 0
    says = f"{int(zero.sum())} of {len(line)} gradient norms are exactly 0."
    yield from emit("grad_norm.zero_share", float(np.mean(zero)), says, events=line.event_id[zero])
    good = line.pick(line.finite)
    if not len(good):
        return
    top = int(np.argmax(good.value))
    for name, index, words in (("first", 0, "first"), ("last", len(good) - 1, "last"), ("max", top, "largest")):
        value = float(good.value[index])
        says = f"The {words} finite gradient norm is {number(value)} at {good.place(index)}."
        yield from emit(f"grad_norm.{name}", value, says, events=good.event_id[[index]])
    usual = _usual(events, good)
    says = f"The median gradient norm is {number(usual)} over {len(good)} points."
    yield from emit("grad_norm.median", usual, says, events=good.event_id[:1])
    yield from _tiny(good, usual)
    if len(good) >= 5 and usual > 0:
        yield from _extremes(good, usual)
    yield from _clipped(events, good)


def _usual(events: EventTable, good: Curve) -> float:
    """Median before the trouble, so that an explosion does not set its own measure."""
    before = before_onset(events, good)
    if before is not None and before.sum() >= 5:
        return float(np.median(good.value[before]))
    return float(np.median(good.value))


def _tiny(good: Curve, usual: float) -> Iterator[Fact]:
    if len(good) < 3 or not good.value.any():
        return
    tiny = usual < VANISHED or float(np.max(good.value)) < 1e-5
    says = f"The median gradient norm is {number(usual)}, the largest {number(float(np.max(good.value)))}."
    yield from emit("grad_norm.tiny", tiny, says, events=good.event_id[:2])
    if len(good) < 10:
        return
    head = float(np.median(good.value[: max(3, len(good) // 10)]))
    tail = float(np.median(good.value[-(len(good) // 4) :]))
    if head > 0:
        says = f"The gradient norm went from {number(head)} at the start to {number(tail)} over the last quarter."
        yield from emit("grad_norm.falling", tail < 1e-3 * head, says, events=good.event_id[[0, len(good) - 1]])


def _extremes(good: Curve, usual: float) -> Iterator[Fact]:
    later = good.pick(slice(3, None))
    top = int(np.argmax(later.value))
    largest = float(later.value[top])
    ratio = largest / usual
    says = f"The largest gradient norm after the start is {number(largest)} at {later.place(top)}: "
    says += f"{number(ratio)}x the median."
    seen = later.event_id[[top]]
    yield from emit("grad_norm.max_over_median", ratio, says, unit="x", events=seen)
    yield from emit("grad_norm.over_100", largest > LARGE and ratio > 5, says, events=seen)
    stretches = runs(later.value > EXPLOSION * usual)
    yield from emit("grad_norm.spikes", len(stretches), says, events=later.event_id[[start for start, _ in stretches]])
    if stretches:
        unit = "step" if later.step_at(top) is not None else "point"
        yield from emit("grad_norm.spike_step", later.position(top), says, unit=unit, events=seen)


def _clipped(events: EventTable, good: Curve) -> Iterator[Fact]:
    limit = config_number(events, "max_grad_norm")
    if limit is None or limit <= 0 or len(good) < 5:
        return
    share = float(np.mean(good.value > limit * 1.0001))
    says = f"{percent(share)} of the gradient norms are above the clipping threshold of {number(limit)}."
    yield from emit("grad_norm.clipped_share", share, says, events=good.event_id[good.value > limit])


def non_finite(events: EventTable) -> Iterator[Fact]:
    """Where is the gradient norm NaN or infinite?"""
    line = curve(events, "grad_norm")
    if line is None:
        return
    bad = ~line.finite
    says = f"{int(bad.sum())} of {len(line)} gradient norms are not finite."
    yield from emit("grad_norm.nan_share", float(np.mean(bad)), says, events=line.event_id[bad])
    stretches = runs(bad)
    if not stretches:
        return
    lasting = stretches[-1][1] == len(line)
    first = stretches[-1][0] if lasting else stretches[0][0]
    unit = "step" if line.step_at(first) is not None else "point"
    says = f"The gradient norm is {number(float(line.value[first]))} at {line.place(first)}"
    says += " and stays non-finite." if lasting else ", and finite again later."
    yield from emit("grad_norm.nan_step", line.position(first), says, unit=unit, events=line.event_id[[first]])
    yield from emit("grad_norm.nan_isolated", not lasting, says, events=line.event_id[bad])


def before_trouble(events: EventTable) -> Iterator[Fact]:
    """Did the gradient norm grow by a factor of ten up to the trouble, or up to the end of the log?"""
    line = curve(events, "grad_norm")
    if line is None:
        return
    stretches = runs(~line.finite)
    upto = stretches[-1][0] if stretches and stretches[-1][1] == len(line) else len(line)
    good = line.pick(line.finite & (np.arange(len(line)) < upto))
    if len(good) < 4:
        return
    recent = min(10, len(good) // 2)
    calm = np.arange(len(good)) < len(good) - recent
    before = before_onset(events, good)
    if before is not None and int(np.sum(calm & before)) >= 3:
        calm &= before
    base = float(np.median(good.value[calm][-30:]))
    if base <= 0:
        return
    last = float(np.max(good.value[-min(3, recent) :]))
    growth = last / base
    says = f"The last gradient norms, up to {good.place(-1)}, reach {number(last)}: {number(growth)}x the median of "
    says += f"{number(base)} before."
    seen = good.event_id[-3:][::-1]
    yield from emit("grad_norm.growth", growth, says, unit="x", events=seen)
    yield from emit("grad_norm.rising", growth >= EXPLOSION, says, events=seen)


FACTS: tuple[FactFunction, ...] = (levels, non_finite, before_trouble)

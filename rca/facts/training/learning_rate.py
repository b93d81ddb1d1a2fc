"""The learning rate: its peak, its warm-up, where it stood when things went wrong, whether it is of a usual size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.failure.first_failure import chronology
from rca.facts.failure.progress import progress
from rca.facts.failure.run import planned_steps
from rca.facts.interface import Fact, FactFunction
from rca.facts.training.curves import Curve, at_or_before, config_number, curve
from rca.facts.training.learning_rate_range import usual_range
from rca.facts.training.onset import onset_event, onset_step

CATALOGUE: Mapping[str, str] = {
    "lr.peak": "largest learning rate: logged, else configured",
    "lr.first": "first logged learning rate",
    "lr.last": "last logged learning rate",
    "lr.at_failure": "learning rate when the loss broke or the run failed",
    "lr.order": "order of magnitude of the peak (log10, rounded down)",
    "lr.zero_share": "share of the logged learning rates that are exactly 0",
    "lr.always_zero": "every logged learning rate is 0 although three or more were logged",
    "lr.has_warmup": "the learning rate rises to its peak at the start, or a warm-up is configured",
    "lr.warmup_steps": "steps of the warm-up (step)",
    "lr.in_warmup_at_failure": "the learning rate was still rising when the loss broke or the run failed",
    "lr.at_peak_at_failure": "the learning rate was at 90 % of its peak or more then",
    "lr.final_ratio": "last over peak learning rate",
    "lr.decayed": "the learning rate fell below 1 % of its peak before the last tenth of the run",
    "lr.constant": "the learning rate never changed over at least ten points",
    "lr.high": "peak above the usual range of the optimizer, with a factor of ten to spare",
    "lr.low": "peak below the usual range of the optimizer, with a factor of ten to spare",
    "lr.ordinary": "peak within the usual range of the optimizer",
    "lr.under_usual": "peak over the lower end of the usual range (x)",
    "lr.over_usual": "peak over the upper end of the usual range (x)",
    "lr.jump": "largest ratio between neighbouring learning rates after the warm-up (x)",
}


def peak(events: EventTable) -> tuple[float, str, tuple[int, ...]] | None:
    """Return the largest learning rate, where it comes from, and the event that shows it."""
    line = _line(events)
    configured = events.config("learning_rate")
    value = config_number(events, "learning_rate")
    if line is not None and float(np.max(line.value)) > 0:
        top = int(np.argmax(line.value))
        logged = float(line.value[top])
        if value is not None and configured is not None and value > logged and _cut_short(events, line):
            return value, "configured; the log ends during the warm-up", (configured.event_id, int(line.event_id[top]))
        return logged, f"logged at {line.place(top)}", (int(line.event_id[top]),)
    if value is not None and configured is not None and value > 0:
        return value, "configured", (configured.event_id,)
    return None


def _line(events: EventTable) -> Curve | None:
    line = curve(events, "learning_rate")
    if line is None:
        return None
    good = line.pick(line.finite & (line.value >= 0))
    return good if len(good) else None


def _cut_short(events: EventTable, line: Curve) -> bool:
    return len(line) > 1 and int(np.argmax(line.value)) == len(line) - 1 and bool(warmup_steps(events))


def warmup_steps(events: EventTable) -> float | None:
    """Return the configured warm-up in steps; 0 when a warm-up is configured as none."""
    steps = config_number(events, "warmup_steps")
    ratio = config_number(events, "warmup_ratio")
    planned = planned_steps(events)
    if steps is not None and steps > 0:
        return steps * planned if steps < 1 and planned is not None else steps
    if ratio is not None and ratio > 0:
        return ratio * planned if planned is not None else None
    return 0.0 if steps is not None or ratio is not None else None


def trouble_step(events: EventTable) -> tuple[float, str] | None:
    """Return the step at which the numbers broke, else the step of the failure."""
    step = onset_step(events)
    if step is not None:
        return step, "when the loss broke"
    head = chronology(events).first
    at = progress(events).step_before(head.event) if head is not None else None
    return (float(at), "when the run failed") if at is not None else None


def values(events: EventTable) -> Iterator[Fact]:
    """How large was the learning rate?"""
    top = peak(events)
    line = _line(events)
    if top is not None:
        value, source, seen = top
        yield from emit("lr.peak", value, f"The peak learning rate is {number(value)} ({source}).", events=seen)
        order = math.floor(math.log10(value) + 1e-9)
        yield from emit("lr.order", order, f"The peak learning rate is of the order 1e{order}.", events=seen)
    if line is None:
        return
    first, last = float(line.value[0]), float(line.value[-1])
    yield from emit("lr.first", first, f"The first learning rate is {number(first)}.", events=line.event_id[:1])
    yield from emit(
        "lr.last", last, f"The last learning rate is {number(last)} at {line.place(-1)}.", events=line.event_id[-1:]
    )
    zero = line.value == 0
    says = f"{int(zero.sum())} of {len(line)} learning rates are exactly 0."
    yield from emit("lr.zero_share", float(np.mean(zero)), says, events=line.event_id[zero])
    if len(line) >= 3:
        yield from emit("lr.always_zero", bool(zero.all()), says, events=line.event_id[zero])
    if top is not None:
        ratio = last / top[0]
        says = f"The learning rate ends at {percent(ratio)} of its peak of {number(top[0])}."
        yield from emit("lr.final_ratio", ratio, says, events=line.event_id[-1:])
        yield from _decay(line, top[0])
    if len(line) >= 10:
        low, high = float(line.value.min()), float(line.value.max())
        says = f"{len(line)} learning rates lie between {number(low)} and {number(high)}."
        yield from emit(
            "lr.constant", bool(np.ptp(line.value) <= 1e-9 * abs(last)), says, events=line.event_id[[0, -1]]
        )


def _decay(line: Curve, top: float) -> Iterator[Fact]:
    if len(line) < 10:
        return
    after = np.flatnonzero(line.value >= 0.99 * top)
    start = int(after[-1]) if len(after) else 0
    low = np.flatnonzero(line.value[start:] < 0.01 * top) + start
    early = len(low) > 0 and low[0] < 0.9 * len(line) and bool(np.all(line.value[low[0] :] < 0.02 * top))
    where = line.place(int(low[0])) if len(low) else "no point"
    says = f"The learning rate falls below 1 % of its peak at {where}."
    yield from emit("lr.decayed", early, says, events=line.event_id[low[:1]])
    later = line.value[start:]
    both = (later[1:] > 0) & (later[:-1] > 0)
    if both.any():
        ratios = later[1:][both] / later[:-1][both]
        jump = float(np.max(ratios))
        yield from emit("lr.jump", jump, f"Neighbouring learning rates rise {number(jump)}x at most.", unit="x")


def warmup(events: EventTable) -> Iterator[Fact]:
    """Was there a warm-up, and was it over when things went wrong?"""
    line = _line(events)
    configured = warmup_steps(events)
    rise = _rise(line) if line is not None else None
    if configured is None and rise is None:
        return
    has = bool(rise) or bool(configured)
    steps = rise if rise else configured
    says = f"The learning rate rises over {number(steps)} steps." if has and steps else "There is no warm-up."
    seen = () if line is None else line.event_id[:1]
    yield from emit("lr.has_warmup", has, says, events=seen)
    if has and steps:
        yield from emit("lr.warmup_steps", float(steps), says, unit="step", events=seen)


def _rise(line: Curve) -> float | None:
    """Return the steps over which the learning rate rises to its peak; 0 when it starts there; None when unknown."""
    if len(line) < 3 or not line.value.any():
        return None
    top = int(np.argmax(line.value >= 0.999 * np.max(line.value)))
    if line.value[0] >= 0.9 * line.value[top]:
        first = line.step_at(0)
        return 0.0 if first is None or first <= 10 else None
    rising = np.diff(line.value[: top + 1])
    if not np.all(rising >= -1e-12) or line.value[0] > 0.7 * line.value[top]:
        return None
    return float(line.position(top))


def at_trouble(events: EventTable) -> Iterator[Fact]:
    """Where did the learning rate stand when the loss broke or the run failed?"""
    top, line = peak(events), _line(events)
    trouble = _trouble(events, line)
    if trouble is None or top is None:
        return
    step, when, index = trouble
    configured = warmup_steps(events)
    if line is not None and index is not None:
        value = float(line.value[index])
        seen = line.event_id[[index]]
        says = (
            f"The learning rate was {number(value)} {when} (step {int(step)}), {percent(value / top[0])} of its peak."
        )
        yield from emit("lr.at_failure", value, says, events=seen)
        yield from emit("lr.at_peak_at_failure", value >= 0.9 * top[0], says, events=seen)
        rises = value > 0 and index >= 1 and bool(np.all(np.diff(line.value[: index + 1]) >= 0))
        moving = rises and value > float(line.value[0]) and value > float(line.value[max(index - 2, 0)])
        inside = moving or bool(configured and step < configured)
        yield from emit("lr.in_warmup_at_failure", inside, says, events=seen)
    elif configured is not None:
        says = (
            f"The warm-up takes {number(configured)} steps; step {int(step)} is where the loss broke or the run failed."
        )
        yield from emit("lr.in_warmup_at_failure", step < configured, says, events=top[2])


def _trouble(events: EventTable, line: Curve | None) -> tuple[float, str, int | None] | None:
    """Return the step of the trouble, what it was, and the learning rate's point there; points stand for steps in a
    log without steps."""
    found = trouble_step(events)
    if found is not None:
        return (*found, at_or_before(line, found[0]) if line is not None else None)
    event = onset_event(events)
    if event is None or line is None or np.isfinite(line.step).any():
        return None
    index = min(int(np.searchsorted(line.event_id, event)), len(line) - 1)
    return float(index), "when the loss broke", index


def usual(events: EventTable) -> Iterator[Fact]:
    """Is the learning rate of a size that others use?"""
    top = peak(events)
    if top is None:
        return
    expected = usual_range(events)
    value, _, seen = top
    says = (
        f"The peak learning rate is {number(value)}; usual for {expected.what} is {number(expected.low)} to "
        f"{number(expected.high)} ({expected.source})."
    )
    yield from emit("lr.high", value > expected.alarm_high, says, events=seen)
    yield from emit("lr.low", value < expected.alarm_low, says, events=seen)
    yield from emit("lr.ordinary", expected.low <= value <= expected.high, says, events=seen)
    yield from emit("lr.under_usual", value / expected.low, says, unit="x", events=seen)
    yield from emit("lr.over_usual", value / expected.high, says, unit="x", events=seen)


FACTS: tuple[FactFunction, ...] = (values, warmup, at_trouble, usual)

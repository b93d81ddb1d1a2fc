"""The loss scale of half-precision training: how far it fell, how often steps were skipped, whether it came back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from rca.events import Event, EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.failure.progress import progress
from rca.facts.interface import Fact, FactFunction
from rca.facts.memo import once_per_table
from rca.facts.training.curves import curve, curves

CATALOGUE: Mapping[str, str] = {
    "loss_scale.first": "first loss scale",
    "loss_scale.last": "last loss scale",
    "loss_scale.min": "smallest loss scale",
    "loss_scale.halvings": "number of halvings over the run",
    "loss_scale.longest_fall": "most halvings in a row, without a rise and without a calm stretch between",
    "loss_scale.at_floor": "the loss scale fell to 1 or below (a constant scale of 1 did not fall)",
    "loss_scale.fell_to_end": "the scale was still falling when the log ended",
    "loss_scale.recovered": "the scale fell, but stayed above 1 and was not falling any more when the log ended",
    "loss_scale.skipped_share": "share of the steps that were skipped because of overflow",
    "loss_scale.skipped": "number of skipped steps",
    "loss_scale.static": "the scale never changed over at least 50 points",
}

FLOOR = 1.0
"""Below a scale of 1 the scaler makes small gradients smaller; DeepSpeed stops the run at its minimum of 1."""
CALM_STEPS = 10
"""Steps without a change that end a fall: falls from 2^16 to a scale that holds are ordinary (FACTS 6, row 14)."""
_SKIPS = (
    "deepspeed.overflow",
    "fairseq.scale_dropped",
    "amp.scale_dropped",
    "megatron.skipped",
    "deepspeed.grad_overflow",
)


class Scale(NamedTuple):
    """The loss scale in the order in which it was reported."""

    value: np.ndarray[tuple[int], np.dtype[np.float64]]
    event_id: np.ndarray[tuple[int], np.dtype[np.int64]]
    step: np.ndarray[tuple[int], np.dtype[np.float64]]
    """Optimizer steps; NaN where unknown."""
    place: tuple[str, ...]


@once_per_table
def scale(events: EventTable) -> Scale | None:
    """Return the loss scale from its metric, else from the overflow messages, whichever tells more."""
    line = curve(events, "loss_scale")
    messages = _from_messages(events)
    if line is not None:
        good = line.pick(line.finite & (line.value >= 0))
        if len(good) >= 2 and (messages is None or len(good) >= len(messages.value)):
            places = tuple(good.place(index) for index in range(len(good)))
            return Scale(value=good.value, event_id=good.event_id, step=good.step, place=places)
    return messages


def _from_messages(events: EventTable) -> Scale | None:
    """Follow the scale through the overflow messages of one rank; a scale above the last one shows a rise between."""
    rows: list[tuple[float, Event]] = []
    speaker = None
    for event in events.of_kind("log"):
        if not event.name.startswith(_SKIPS):
            continue
        said_by = event.attr("rank", event.rank)
        speaker = said_by if speaker is None else speaker
        if said_by != speaker:
            continue
        for value in (event.attr("scale"), event.attr("next")):
            if _number(value) and (not rows or rows[-1][0] != value):
                rows.append((float(value), event))
    if len(rows) < 2:
        return None
    return Scale(
        value=np.array([value for value, _ in rows]),
        event_id=np.array([event.event_id for _, event in rows], dtype=np.int64),
        step=np.array([math.nan if event.step is None else event.step for _, event in rows], dtype=float),
        place=tuple(_where(event) for _, event in rows),
    )


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _where(event: Event) -> str:
    return f"step {event.step}" if event.step is not None else f"{event.source}:{event.line}"


def halvings(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return for each pair of neighbours how many halvings lie between them (negative for a rise)."""
    floor = np.finfo(float).tiny
    return np.asarray(np.round(np.log2(np.maximum(values[:-1], floor)) - np.log2(np.maximum(values[1:], floor))))


def falls(
    steps: np.ndarray[tuple[int], np.dtype[np.float64]], gaps: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> tuple[int, int, int]:
    """Return the halvings of the longest fall, the index behind its last one, and the halvings of a fall at the end.

    `gaps` are the steps between neighbours: a fall ends where the scale holds, or takes, more than ten steps a halving.
    """
    best, best_end, current, calm = 0, 0, 0, 0.0
    for index, (step, gap) in enumerate(zip(steps, gaps, strict=True)):
        count = int(np.clip(step, -200, 200))
        if count > 0:
            hurried = gap <= CALM_STEPS * count
            current = current + count if hurried else 1
            calm = 0.0
            if current > best:
                best, best_end = current, index + 1
        elif count < 0:
            current, calm = 0, 0.0
        else:
            calm += gap
            current = 0 if calm >= CALM_STEPS else current
    return best, best_end, current


def course(events: EventTable) -> Iterator[Fact]:
    """How did the loss scale develop?"""
    found = scale(events)
    if found is None:
        return
    values, seen = found.value, found.event_id
    low = int(np.argmin(values))
    for name, index, words in (("first", 0, "first"), ("last", len(values) - 1, "last"), ("min", low, "smallest")):
        says = f"The {words} loss scale is {number(float(values[index]))} at {found.place[index]}."
        yield from emit(f"loss_scale.{name}", float(values[index]), says, events=[seen[index]])
    steps = halvings(values)
    gaps = np.diff(found.step)
    fallen = np.flatnonzero(steps > 0)
    total = int(np.minimum(steps[fallen], 200).sum())
    longest, end, current = falls(steps, np.where(np.isfinite(gaps) & (gaps > 0), gaps, 1.0))
    says = f"The loss scale was halved {total} times, {longest} times in a row at most."
    yield from emit("loss_scale.halvings", total, says, events=seen[fallen + 1])
    yield from emit("loss_scale.longest_fall", longest, says, events=seen[[end, max(end - 1, 0)]])
    says = f"The smallest loss scale is {number(float(values[low]))} at {found.place[low]}."
    fell = bool(len(fallen)) and float(values[low]) <= FLOOR
    yield from emit("loss_scale.at_floor", fell, says, events=[seen[low]])
    if len(values) >= 50:
        says = f"The loss scale is {number(float(values[0]))} at all {len(values)} points."
        yield from emit("loss_scale.static", bool(np.ptp(values) == 0), says, events=seen[:1])
    if not len(fallen):
        return
    last = int(fallen[-1]) + 1
    held = progress(events).goes_on_after(events.get(int(seen[last])))
    says = (
        f"The last halving was at {found.place[last]}, to {number(float(values[last]))}; {held} reported steps follow."
    )
    falling = current >= 3 and held < CALM_STEPS
    yield from emit("loss_scale.fell_to_end", falling, says, events=[seen[last], seen[-1]])
    yield from emit("loss_scale.recovered", float(values[-1]) > FLOOR and not falling, says, events=[seen[-1]])


def skipped(events: EventTable) -> Iterator[Fact]:
    """How many steps were thrown away?"""
    done = progress(events).last_step
    counted = max(curves(events, "skipped_steps"), key=len, default=None)
    if counted is not None and counted.finite.any():
        good = counted.value[counted.finite]
        rising = bool(np.all(np.diff(good) >= 0)) and len(good) > 2 and float(good[-1]) > float(good[0]) >= 0
        total = float(good[-1]) if rising else float(np.sum(good))
        seen = counted.event_id[counted.finite & (counted.value > 0)]
    else:
        messages = [item for item in events.of_kind("log") if item.name.startswith(_SKIPS[:2] + _SKIPS[4:])]
        ranks = {item.attr("rank", item.rank) for item in messages}
        total = len(messages) / max(len(ranks), 1)
        seen = np.array([item.event_id for item in messages], dtype=np.int64)
        if not messages and scale(events) is None:
            return
    says = f"{number(total)} steps were skipped because of overflow."
    yield from emit("loss_scale.skipped", int(min(total, 1e9)), says, events=seen)
    if done is not None and done > 0:
        share = min(total / done, 1.0)
        says = f"{number(total)} of {done} steps were skipped because of overflow ({percent(share)})."
        yield from emit("loss_scale.skipped_share", share, says, events=seen)


FACTS: tuple[FactFunction, ...] = (course, skipped)

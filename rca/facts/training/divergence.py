"""Whether the training loss lost what it had gained, and stayed there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.memo import once_per_table
from rca.facts.robust import running_median, runs, spread
from rca.facts.training.curves import Curve, curve
from rca.facts.training.non_finite import non_finite_loss
from rca.facts.training.policy import rewarded

if TYPE_CHECKING:
    import numpy.typing as npt

CATALOGUE: Mapping[str, str] = {
    "loss.diverged": "the loss lost more than half of its progress (or rose well above its start) and stays there",
    "loss.diverged_ratio": "level of the last losses over the best level reached (x)",
    "loss.diverged_step": "first step of the stretch in which the loss stays high",
    "loss.lost_share": "share of the progress made that was lost again at the end",
    "loss.rising_at_end": "the last losses rise from one to the next to at least twice the level before",
}

LOST_SHARE = 0.5
"""More than half of the progress lost (FACTS 4, runmedic)."""
ABOVE_START = 1.5
"""A run without progress diverges when it ends this many times above its start: warm-up alone rarely adds half."""
LOST_AT_ONCE = 2.0
LOST_FOR_LONG = 1.15
MANY_POINTS = 40
"""Times the first loss that all later ones must reach: one lucky batch is not half of all others, and among many points
the luckiest of all is not the first."""
GAINED = 0.05
"""A fall of the loss by less than this share is no progress that could be lost."""
FEW_POINTS = 8
"""Below this the noise cannot be estimated and only a five-fold rise counts."""
FEW_POINTS_RISE = 5.0


class Shape(NamedTuple):
    """The loss before it stopped being finite, smoothed, with its levels."""

    curve: Curve
    smooth: npt.NDArray[np.float64]
    noise: float
    start: float
    best: float
    best_index: int
    end: float
    ends_non_finite: bool
    resumed: bool = False

    @property
    def progress(self) -> float:
        """How far the loss fell from its start to its best level."""
        return max(self.start - self.best, 0.0)

    @property
    def tail(self) -> int:
        """Points that a stretch at the end needs to be more than a spike; a NaN behind it proves it with two."""
        return 2 if self.ends_non_finite else max(3, len(self.curve) // 33)


@once_per_table
def loss_shape(events: EventTable) -> Shape | None:
    """Return the smoothed training loss, or None for fewer than three finite points."""
    found = non_finite_loss(events)
    if found is None or len(found.sound) < 3:
        return None
    line = found.sound
    count = len(line)
    window = int(np.clip(count // 20, 3, 25)) if count >= FEW_POINTS else 1
    smooth = running_median(line.value, window)
    noise = _noise(line.value, smooth) if count >= FEW_POINTS else 0.0
    ends_badly = found.persists_from is not None
    last = 2 if ends_badly else max(3, count // 20)
    best_index = int(np.argmin(smooth))
    shape = Shape(
        curve=line,
        smooth=smooth,
        noise=noise,
        start=float(np.median(line.value[:3])) if count >= FEW_POINTS else float(line.value[0]),
        best=float(smooth[best_index]),
        best_index=best_index,
        end=float(np.median(line.value[-last:])),
        ends_non_finite=ends_badly,
    )
    first = float(line.value[0])
    shape = shape._replace(resumed=_resumed(events, line))
    return shape._replace(start=first, best=first, best_index=0) if _left_at_once(shape) else shape


def _resumed(events: EventTable, line: Curve) -> bool:
    """Whether the first point lies far behind the start by its step or epoch.

    A resumed run may divide its first loss by the steps of all that was trained before.
    """
    epochs = curve(events, "epoch")
    for place in (line.step, *(() if epochs is None else (epochs.value,))):
        known = place[np.isfinite(place)]
        if len(known) >= FEW_POINTS and known[0] > 3 * float(np.median(np.abs(np.diff(known)))) and known[0] > 1:
            return True
    return False


def _noise(values: npt.NDArray[np.float64], smooth: npt.NDArray[np.float64]) -> float:
    """Return the noise around the trend, or between neighbours, where few points make a trend of noise."""
    return max(spread(values - smooth), spread(np.diff(values)) / 2**0.5)


FAR_AWAY, LAST_POINTS = 5.0, 3
"""The last three losses above five times the first one: no noise, however wild a few points make it look."""


def diverged_from(shape: Shape) -> int | None:
    """Return the index from which on the loss stays high, or None when it did not diverge."""
    found, values = _stays_high(shape), shape.curve.value
    if found is None and _left_at_once(shape):
        return 1
    if found is not None or shape.start <= 0 or (values[-LAST_POINTS:] <= FAR_AWAY * shape.start).any():
        return found
    low = np.flatnonzero(values <= 2 * shape.start)
    return int(low[-1]) + 1 if len(low) else 0


def _left_at_once(shape: Shape) -> bool:
    """Whether every loss after the first lies far above it: the start was lost before the second line was logged."""
    values = shape.curve.value
    if len(values) < FEW_POINTS or values[0] <= 0 or shape.resumed:
        return False
    lowest = float(np.min(values[1:]))
    factor = LOST_FOR_LONG if len(values) >= MANY_POINTS else LOST_AT_ONCE
    return lowest >= factor * values[0] and lowest - float(values[0]) > 6 * shape.noise


def _stays_high(shape: Shape) -> int | None:
    values, count = shape.curve.value, len(shape.curve)
    lost = shape.end - shape.best
    if count < FEW_POINTS:
        rose = shape.start > 0 and values[-1] > FEW_POINTS_RISE * shape.start and values[-1] >= values[-2]
        return int(np.flatnonzero(values > 2 * shape.start)[0]) if rose else None
    gained = shape.progress > max(3 * shape.noise, GAINED * abs(shape.start))
    if gained:
        if lost <= max(LOST_SHARE * shape.progress, 3 * shape.noise, 0.05 * abs(shape.best)):
            return None
        bar = shape.best + LOST_SHARE * shape.progress
    else:
        if shape.start <= 0 or shape.end <= ABOVE_START * shape.start or shape.end - shape.start <= 3 * shape.noise:
            return None
        # One enormous last value must not hide the climb that led to it.
        bar = min(shape.start + 0.5 * (shape.end - shape.start), ABOVE_START * shape.start + 3 * shape.noise)
    high = running_median(values, 3) > bar
    if shape.ends_non_finite:
        high[-2:] |= values[-2:] > bar
    stretches = [stretch for stretch in runs(high) if stretch[0] > 0 or not gained]
    if not stretches or stretches[-1][1] < count:
        return None
    onset = stretches[-1][0]
    if count - onset < shape.tail or onset <= shape.best_index * gained:
        return None
    earlier = [stretch for stretch in stretches[:-1] if stretch[0] > 0 and stretch[1] - stretch[0] >= 2]
    if len(earlier) >= 2 and shape.end < 2 * max(float(np.max(values[start:end])) for start, end in earlier):
        return onset if _far_above(shape) else None
    return onset


def _far_above(shape: Shape) -> bool:
    """Whether the end lies well above both the start and the usual level, by more than noise can do."""
    usual = max(shape.start, float(np.median(shape.smooth[: len(shape.smooth) // 2])))
    return shape.end > ABOVE_START * usual and shape.end - usual > 6 * shape.noise


def divergence(events: EventTable) -> Iterator[Fact]:
    """Did the loss go back up for good?"""
    if rewarded(events):
        # The loss of a value function follows the rewards, and that of the policy wavers around zero.
        return
    shape = loss_shape(events)
    if shape is None or (len(shape.curve) < FEW_POINTS and not shape.ends_non_finite and len(shape.curve) < 5):
        return
    line = shape.curve
    onset = diverged_from(shape)
    seen = line.event_id[[len(line) - 1, shape.best_index, *([onset] if onset is not None else [])]]
    levels = (
        f"The loss started at {number(shape.start)}, reached {number(shape.best)} at {line.place(shape.best_index)} "
        f"and ended at {number(shape.end)}"
    )
    words = "" if onset is None else f", rising for good from {line.place(onset)} on"
    yield from emit("loss.diverged", onset is not None, f"{levels}{words}.", events=seen)
    if shape.best > 0:
        says = f"The last losses are {number(shape.end / shape.best)} times the best level of {number(shape.best)}."
        yield from emit("loss.diverged_ratio", shape.end / shape.best, says, unit="x", events=seen)
    if shape.progress > 0:
        share = max(shape.end - shape.best, 0.0) / shape.progress
        says = f"{levels}: {percent(share)} of the progress was lost again."
        yield from emit("loss.lost_share", share, says, events=seen)
    if onset is not None:
        unit = "step" if line.step_at(onset) is not None else "point"
        says = f"From {line.place(onset)} on the loss stays high."
        yield from emit("loss.diverged_step", line.position(onset), says, unit=unit, events=seen)


def rising_at_end(events: EventTable) -> Iterator[Fact]:
    """Is the log cut off in the middle of a climb?"""
    shape = loss_shape(events)
    if shape is None or len(shape.curve) < 6 or rewarded(events):
        return
    values = shape.curve.value
    climb = values[-3:]
    base = float(np.median(values[-23:-3]))
    rises = bool(np.all(np.diff(climb) > 0)) and base > 0 and float(climb[-1]) >= 2 * base
    rises = rises and float(climb[-1]) - base > 6 * shape.noise
    last = ", ".join(number(float(value)) for value in climb)
    says = f"The last three losses are {last}; the median before is {number(base)}."
    yield from emit("loss.rising_at_end", rises, says, events=shape.curve.event_id[-3:][::-1])


FACTS: tuple[FactFunction, ...] = (divergence, rising_at_end)

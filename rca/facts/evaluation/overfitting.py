"""Losses of validation and training side by side: does one rise while the other falls?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.robust import block_medians, running_median, spread
from rca.facts.training.curves import Curve, curve

if TYPE_CHECKING:
    import numpy.typing as npt

CATALOGUE: Mapping[str, str] = {
    "eval.overfit": "validation loss 5 % above its minimum, three evaluations or more after it, while training falls",
    "eval.gap": "last validation loss minus the training loss there, over the training loss",
    "eval.below_train_share": "share of evaluations whose loss lies below the smoothed training loss there",
    "eval.train_learned": "the training loss fell by 20 % or more while the validation loss never fell by 2 %",
    "eval.apart": "validation loss five times the training loss at all evaluations while its accuracy never grows",
}

OVERFIT_RISE = 0.05
OVERFIT_RISE_OF_GAIN = 0.15
"""The same where a loss ends below zero, as a share of all that validation had gained."""
OVERFIT_EVALS = 3
"""Validation rises by 5 % over the last three evaluations while training falls (FACTS 4, runmedic)."""
OVERFIT_NOISE, NOISE_KNOWN = 2.5, 12
"""Times the noise between neighbouring evaluations, and evaluations from which it is known: the smallest of many noisy
values lies below their level by about twice the noise."""
APART = 5.0
"""Times the training loss: more than an ordinary gap, at the first evaluation already."""
RISING_BLOCKS = 12
"""Stretches into which a longer rise is cut, so that the noise of single evaluations does not hide it."""
TRAIN_FALL = 0.03
"""Training falls by 3 % meanwhile (FACTS 4, runmedic)."""


def loss_scale(values: npt.NDArray[np.float64], low: int) -> float:
    """Return by what a rise of a loss is measured: its minimum, or all that it had gained where it goes below zero.

    A Dice loss, a cosine or a log-likelihood ends below zero, and a share of its minimum would say nothing there.
    """
    minimum = float(values[low])
    return minimum if minimum > 0 else float(np.median(values[: min(3, low + 1)])) - minimum


def _summed(events: EventTable, split: str) -> Curve | None:
    """Return the sum of the losses of one split that are told by part only (`val/box_loss`, `val/cls_loss`)."""
    parts = [
        line
        for name in events.metric_names
        if name.startswith((f"{split}/", f"{split}_")) and name.endswith("loss") and (line := curve(events, name))
    ]
    same = [line for line in parts if len(line) == len(parts[0]) and np.array_equal(line.step, parts[0].step)]
    if not same or len(same) != len(parts):
        return None
    return replace(same[0], value=np.sum([line.value for line in same], axis=0))


def overfitting(events: EventTable) -> Iterator[Fact]:
    """Does the validation loss rise while the training loss falls?"""
    validation, training = curve(events, "eval_loss"), curve(events, "loss")
    if validation is None or training is None:
        validation, training = _summed(events, "val"), _summed(events, "train")
    if validation is None or training is None:
        return
    good, train = validation.pick(validation.finite), training.pick(training.finite)
    if len(good) < OVERFIT_EVALS + 1 or len(train) < 4:
        return
    low = int(np.argmin(good.value))
    level, scale = _train_level(train, good), loss_scale(good.value, low)
    if level is None or scale <= 0:
        return
    after = len(good) - 1 - low
    rise = (float(np.median(good.value[-3:])) - float(good.value[low])) / scale if after >= OVERFIT_EVALS else 0.0
    rising = after >= OVERFIT_EVALS and _mostly_rising(good.value[low:])
    fall = _fall(level, low)
    noise = spread(np.diff(good.value)) / 2**0.5 if len(good) >= NOISE_KNOWN else 0.0
    clear = rise * scale > OVERFIT_NOISE * noise
    least = OVERFIT_RISE if good.value[low] > 0 else OVERFIT_RISE_OF_GAIN
    over = rise >= least and rising and clear and fall >= TRAIN_FALL
    says = (
        f"After its minimum of {number(float(good.value[low]))} at {good.place(low)} the validation loss rose by "
        f"{percent(max(rise, 0.0))} over {after} evaluations while the training loss fell by {percent(max(fall, 0.0))}."
    )
    seen = good.event_id[[low, len(good) - 1]]
    yield from emit("eval.overfit", over, says, events=seen)
    yield from _apart(good, level, grew=_accuracy_grew(events))
    if level[-1] > 0:
        gap = (float(good.value[-1]) - float(level[-1])) / float(level[-1])
        says = (
            f"At the end the validation loss is {number(float(good.value[-1]))}, the training loss "
            f"{number(float(level[-1]))}."
        )
        yield from emit("eval.gap", gap, says, events=seen)
    yield from _learned(good, train, seen)
    below = good.value < level
    says = f"{int(below.sum())} of {len(good)} validation losses lie below the training loss at that step."
    yield from emit("eval.below_train_share", float(np.mean(below)), says, events=good.event_id[below])


def _accuracy_grew(events: EventTable) -> bool:
    """Say whether the validation accuracy rose by a tenth of its scale or more after the first evaluation."""
    line = curve(events, "eval_accuracy")
    shares = line.value[line.finite] if line is not None else np.zeros(1)
    full = 100.0 if len(shares) and float(shares.max()) > 1.5 else 1.0
    return bool(len(shares)) and float(shares.max() - shares[0]) >= 0.1 * full


def _apart(good: Curve, level: npt.NDArray[np.float64], *, grew: bool) -> Iterator[Fact]:
    """Does validation, whose accuracy never grows, stay far away from training from the first evaluation on?"""
    if (level <= 0).any():
        yield from emit("eval.apart", False, "The training loss is not positive throughout.", events=good.event_id[:1])
        return
    ratio = good.value / level
    nearest = int(np.argmin(ratio))
    says = f"The validation loss is at least {number(float(ratio[nearest]))} times the training loss at any evaluation"
    says += ", while its accuracy grows." if grew else "."
    yield from emit("eval.apart", float(ratio[nearest]) >= APART and not grew, says, events=good.event_id[[nearest]])


def _fall(level: npt.NDArray[np.float64], start: int) -> float:
    """Return by what share of itself, or of its whole way where it goes below zero, the training loss fell."""
    gained = float(level[start] - level[-1])
    whole = float(level[start]) if level[start] > 0 else float(np.ptp(level))
    return gained / whole if whole > 0 else 0.0


def _mostly_rising(values: npt.NDArray[np.float64]) -> bool:
    """Say whether most steps go up, from stretch to stretch where there are many: noise around a flat line does not."""
    return float(np.mean(np.diff(block_medians(values, RISING_BLOCKS)) > 0)) >= 0.6


def _learned(good: Curve, train: Curve, seen: npt.NDArray[np.int64]) -> Iterator[Fact]:
    head, tail = float(np.median(train.value[:3])), float(np.median(train.value[-max(3, len(train) // 10) :]))
    if head <= 0:
        return
    gained = 1 - tail / head
    at_best = 1 - float(np.min(good.value)) / float(good.value[0]) if good.value[0] > 0 else 1.0
    says = (
        f"The training loss fell by {percent(max(gained, 0.0))}, the validation loss by "
        f"{percent(max(at_best, 0.0))} at best."
    )
    yield from emit("eval.train_learned", gained >= 0.2 and at_best < 0.02, says, events=seen)


def _train_level(train: Curve, evals: Curve) -> npt.NDArray[np.float64] | None:
    """Return the smoothed training loss at each evaluation: by step, else by the order of the log."""
    smooth = running_median(train.value, int(np.clip(len(train) // 20, 1, 25)))
    if np.isfinite(train.step).all() and np.isfinite(evals.step).all():
        order = np.argsort(train.step, kind="stable")
        return np.asarray(np.interp(evals.step, train.step[order], smooth[order]))
    if len(train) == len(evals):
        return smooth
    position = np.searchsorted(train.event_id, evals.event_id) - 1
    return smooth[np.clip(position, 0, len(smooth) - 1)]


FACTS: tuple[FactFunction, ...] = (overfitting,)

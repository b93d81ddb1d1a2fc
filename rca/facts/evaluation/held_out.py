"""Validation against training: overfitting, leakage, evaluations that never change or cannot be repeated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.robust import running_median, spread
from rca.facts.training.curves import Curve, config_number, curve
from rca.facts.training.loss import uniform_guess

if TYPE_CHECKING:
    import numpy.typing as npt

CATALOGUE: Mapping[str, str] = {
    "eval.points": "number of evaluations with a validation loss (or accuracy, where no loss was logged)",
    "eval.first": "first validation loss",
    "eval.last": "last validation loss",
    "eval.best": "smallest validation loss",
    "eval.best_step": "step of the smallest validation loss",
    "eval.loss_nan": "a validation loss is not finite",
    "eval.loss_nan_always": "every validation loss is not finite",
    "eval.constant": "three or more evaluations give exactly the same result",
    "eval.improving": "the validation loss fell by 2 % or more and its best value lies in the last third",
    "eval.overfit": "validation loss 5 % above its minimum, three evaluations or more after it, while training falls",
    "eval.rise": "last validation loss over its minimum, minus one",
    "eval.gap": "last validation loss minus the training loss there, over the training loss",
    "eval.below_train_share": "share of evaluations whose loss lies below the smoothed training loss there",
    "eval.perfect": "accuracy of 99.9 % or more, or a loss below 0.001, in the first half of the evaluations or in all",
    "eval.accuracy_first": "first validation accuracy",
    "eval.accuracy_last": "last validation accuracy",
    "eval.accuracy_best": "largest validation accuracy",
    "eval.accuracy_gap": "training minus validation accuracy at the end",
    "eval.at_chance": "the validation accuracy stays within a fifth of one over the number of classes",
    "eval.train_learned": "the training loss fell by 20 % or more while the validation loss never fell by 2 %",
    "eval.repeat_differs": "two evaluations at the same step give different results (share of difference)",
    "eval.jumps": "largest change between neighbouring evaluations over the median change (x)",
}

UNINFORMED_EVALS, UNINFORMED_SPREAD = 5, 0.05
"""Evaluations, and the spread of the loss over its level, from which a curve counts as one that never moved."""
OVERFIT_RISE = 0.05
OVERFIT_EVALS = 3
"""Validation rises by 5 % over the last three evaluations while training falls (FACTS 4, runmedic)."""
OVERFIT_NOISE, NOISE_KNOWN = 2.5, 12
"""Times the noise between neighbouring evaluations, and evaluations from which it is known: the smallest of many noisy
values lies below their level by about twice the noise."""
TRAIN_FALL = 0.03
"""Training falls by 3 % meanwhile (FACTS 4, runmedic)."""


def losses(events: EventTable) -> Iterator[Fact]:
    """How did the validation loss develop?"""
    line = curve(events, "eval_loss")
    if line is None:
        return
    bad = ~line.finite
    says = f"{int(bad.sum())} of {len(line)} validation losses are not finite."
    yield from emit("eval.loss_nan", bool(bad.any()), says, events=line.event_id[bad])
    if bad.any():
        yield from emit("eval.loss_nan_always", bool(bad.all()), says, events=line.event_id[bad])
    good = line.pick(line.finite)
    yield from emit("eval.points", len(line), f"{len(line)} validation losses were logged.", events=line.event_id[:1])
    if not len(good):
        return
    low = int(np.argmin(good.value))
    first, last, best = float(good.value[0]), float(good.value[-1]), float(good.value[low])
    for name, index, words in (("first", 0, "first"), ("last", -1, "last"), ("best", low, "smallest")):
        says = f"The {words} validation loss is {number(float(good.value[index]))} at {good.place(index)}."
        yield from emit(f"eval.{name}", float(good.value[index]), says, events=good.event_id[[index]])
    yield from emit("eval.best_step", good.step_at(low), says, unit="step", events=good.event_id[[low]])
    if len(good) < 3 or best <= 0:
        return
    seen = good.event_id[[len(good) - 1, low]]
    says = (
        f"The validation loss went from {number(first)} to {number(last)}; its best is {number(best)} at "
        f"{good.place(low)}."
    )
    yield from emit("eval.rise", last / best - 1, says, events=seen)
    yield from emit("eval.improving", best < 0.98 * first and low >= 2 * (len(good) - 1) / 3, says, events=seen)
    changes = np.abs(np.diff(good.value))
    usual = float(np.median(changes))
    if len(changes) >= 4 and usual > 0:
        says = (
            f"Between neighbouring evaluations the loss changes by {number(usual)} usually, "
            f"{number(float(changes.max()))} at most."
        )
        yield from emit(
            "eval.jumps",
            float(changes.max()) / usual,
            says,
            unit="x",
            events=good.event_id[[int(changes.argmax()) + 1]],
        )


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
    if len(good) < OVERFIT_EVALS + 1 or len(train) < 4 or float(np.min(good.value)) <= 0:
        return
    low = int(np.argmin(good.value))
    level = _train_level(train, good)
    if level is None:
        return
    after = len(good) - 1 - low
    rise = float(np.median(good.value[-3:])) / float(good.value[low]) - 1 if after >= OVERFIT_EVALS else 0.0
    rising = after >= OVERFIT_EVALS and _mostly_rising(good.value[low:])
    fall = 1 - float(level[-1]) / float(level[low]) if level[low] > 0 else 0.0
    noise = spread(np.diff(good.value)) / 2**0.5 if len(good) >= NOISE_KNOWN else 0.0
    clear = rise * float(good.value[low]) > OVERFIT_NOISE * noise
    over = rise >= OVERFIT_RISE and rising and clear and fall >= TRAIN_FALL
    says = (
        f"After its minimum of {number(float(good.value[low]))} at {good.place(low)} the validation loss rose by "
        f"{percent(max(rise, 0.0))} over {after} evaluations while the training loss fell by {percent(max(fall, 0.0))}."
    )
    seen = good.event_id[[low, len(good) - 1]]
    yield from emit("eval.overfit", over, says, events=seen)
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


def _mostly_rising(values: npt.NDArray[np.float64]) -> bool:
    """Say whether at least two thirds of the steps go up: noise around a flat line does not."""
    return float(np.mean(np.diff(values) > 0)) >= 0.6


def _learned(good: Curve, train: Curve, seen: npt.NDArray[np.int64]) -> Iterator[Fact]:
    head, tail = float(np.median(train.value[:3])), float(np.median(train.value[-max(3, len(train) // 10) :]))
    if head <= 0:
        return
    gained = 1 - tail / head
    at_best = 1 - float(np.min(good.value)) / float(good.value[0])
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


def sameness(events: EventTable) -> Iterator[Fact]:
    """Do evaluations repeat themselves, or fail to repeat where they should?"""
    for name in ("eval_loss", "eval_accuracy"):
        line = curve(events, name)
        if line is None:
            continue
        good = line.pick(line.finite)
        steps, counts = np.unique(good.step[np.isfinite(good.step)], return_counts=True)
        if len(good) >= 3 and (len(steps) >= 3 or not len(steps)):
            same = bool(np.ptp(good.value) <= 1e-9 * max(abs(float(good.value[0])), 1e-12))
            says = f"{len(good)} evaluations give a {name} between {number(float(good.value.min()))} and "
            says += f"{number(float(good.value.max()))}."
            yield from emit("eval.constant", same, says, events=good.event_id)
        twice = steps[counts > 1]
        if len(twice):
            values = good.value[good.step == twice[0]]
            share = float(np.ptp(values)) / max(abs(float(np.mean(values))), 1e-12)
            says = (
                f"At step {int(twice[0])} the {name} was {' and '.join(number(float(value)) for value in values[:3])}."
            )
            yield from emit("eval.repeat_differs", share, says, events=good.event_id[good.step == twice[0]])
        return


def accuracy(events: EventTable) -> Iterator[Fact]:
    """How good is the model on held-out data, and is it too good?"""
    line, loss = curve(events, "eval_accuracy"), curve(events, "eval_loss")
    good = line.pick(line.finite) if line is not None else None
    if good is not None and len(good):
        share = good.value / 100 if float(np.max(good.value)) > 1.5 else good.value
        for name, value, index in (
            ("first", float(share[0]), 0),
            ("last", float(share[-1]), -1),
            ("best", float(share.max()), int(share.argmax())),
        ):
            says = f"The {name} validation accuracy is {percent(value)} at {good.place(index)}."
            yield from emit(f"eval.accuracy_{name}", value, says, events=good.event_id[[index]])
        if loss is None:
            yield from emit("eval.points", len(good), f"{len(good)} validation accuracies were logged.")
        yield from _chance(events, good, share)
        yield from _accuracy_gap(events, good, share)
    yield from _perfect(good, loss.pick(loss.finite) if loss is not None else None)


def _uninformed(events: EventTable, good: Curve, share: npt.NDArray[np.float64]) -> Iterator[Fact]:
    """Say whether accuracy and loss fit a prediction that knows nothing: the loss of an even guess is -ln(accuracy)."""
    line = curve(events, "eval_loss") or curve(events, "loss")
    if line is None or len(share) < UNINFORMED_EVALS:
        return
    losses = line.value[line.finite]
    if len(losses) < UNINFORMED_EVALS or float(np.min(losses)) <= 0:
        return
    level, usual = float(np.median(losses)), float(np.median(share))
    flat = float(np.ptp(np.percentile(losses, [5, 95]))) <= UNINFORMED_SPREAD * level
    steady = 0 < usual <= 0.55 and float(share.max()) <= 1.3 * usual
    fits = abs(math.exp(-level) - usual) <= 0.2 * usual
    says = (
        f"The validation accuracy stays at {percent(usual)} and the loss at {number(level)}: an even guess among "
        f"{round(1 / usual) if usual > 0 else 0} outcomes has just these."
    )
    if flat and steady and fits:
        yield from emit("eval.at_chance", True, says, events=good.event_id[-1:])


def _chance(events: EventTable, good: Curve, share: npt.NDArray[np.float64]) -> Iterator[Fact]:
    outcomes = uniform_guess(events)
    classes = config_number(events, "num_labels")
    count = int(classes) if classes is not None and classes >= 2 else outcomes[0] if outcomes is not None else 0
    if not 2 <= count <= 1000 or len(share) < 3:
        yield from _uninformed(events, good, share)
        return
    chance = 1 / count
    says = (
        f"The best validation accuracy is {percent(float(share.max()))}; guessing among {count} classes gives "
        f"{percent(chance)}."
    )
    yield from emit("eval.at_chance", float(share.max()) <= 1.2 * chance, says, events=good.event_id[-1:])


def _accuracy_gap(events: EventTable, good: Curve, share: npt.NDArray[np.float64]) -> Iterator[Fact]:
    line = curve(events, "accuracy")
    if line is None or not line.finite.any():
        return
    train = line.value[line.finite]
    level = float(np.median(train[-3:])) / (100 if float(np.max(train)) > 1.5 else 1)
    says = f"At the end the training accuracy is {percent(level)}, the validation accuracy {percent(float(share[-1]))}."
    yield from emit("eval.accuracy_gap", level - float(share[-1]), says, events=[int(good.event_id[-1])])


def _perfect(good: Curve | None, loss: Curve | None) -> Iterator[Fact]:
    reached = []
    if good is not None and len(good):
        share = good.value / 100 if float(np.max(good.value)) > 1.5 else good.value
        reached.append((good, share >= 0.999))
    if loss is not None and len(loss):
        reached.append((loss, np.abs(loss.value) < 1e-3))
    if not reached:
        return
    for line, top in reached:
        early = top[: math.ceil(len(top) / 2)]
        if early.any():
            index = int(np.flatnonzero(top)[0])
            says = f"The {line.name} is {number(float(line.value[index]))} at {line.place(index)}."
            yield from emit("eval.perfect", True, says, events=line.event_id[[index]])
            return
    yield from emit("eval.perfect", False, f"No perfect result among {len(reached[0][0])} evaluations.")


FACTS: tuple[FactFunction, ...] = (losses, overfitting, sameness, accuracy)

"""Validation losses and accuracies: how they develop, and whether they never change or cannot be repeated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.evaluation.overfitting import loss_scale
from rca.facts.interface import Fact, FactFunction
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
    "eval.rise": "rise of the last validation loss over its minimum, as a share of it (below zero: of its gain)",
    "eval.perfect": "accuracy of 99.9 % or more, or a loss below 0.001, in the first half of the evaluations or in all",
    "eval.accuracy_first": "first validation accuracy",
    "eval.accuracy_last": "last validation accuracy",
    "eval.accuracy_best": "largest validation accuracy",
    "eval.accuracy_gap": "training minus validation accuracy at the end",
    "eval.at_chance": "the validation accuracy stays within a fifth of one over the number of classes",
    "eval.repeat_differs": "two evaluations at the same step give different results (share of difference)",
    "eval.jumps": "largest change between neighbouring evaluations over the median change (x)",
}

UNINFORMED_EVALS, UNINFORMED_SPREAD = 5, 0.05
"""Evaluations, and the spread of the loss over its level, from which a curve counts as one that never moved."""
NEXT_TO_NOTHING = 0.01


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
    scale = loss_scale(good.value, low)
    if len(good) < 3 or scale <= 0:
        return
    seen = good.event_id[[len(good) - 1, low]]
    says = (
        f"The validation loss went from {number(first)} to {number(last)}; its best is {number(best)} at "
        f"{good.place(low)}."
    )
    yield from emit("eval.rise", (last - best) / scale, says, events=seen)
    better = first - best > 0.02 * max(abs(first), abs(best))
    yield from emit("eval.improving", better and low >= 2 * (len(good) - 1) / 3, says, events=seen)
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
    yield from _perfect(good, loss.pick(loss.finite) if loss is not None else None, curve(events, "loss"))


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


def _perfect(good: Curve | None, loss: Curve | None, training: Curve | None) -> Iterator[Fact]:
    reached = []
    if good is not None and len(good):
        share = good.value / 100 if float(np.max(good.value)) > 1.5 else good.value
        reached.append((good, share >= 0.999))
    if loss is not None and len(loss):
        # The loss of a regression is small by its unit: next to nothing is what little is left of the first loss.
        first = [
            float(line.value[line.finite][0]) for line in (loss, training) if line is not None and line.finite.any()
        ]
        reached.append((loss, np.abs(loss.value) < min(1e-3, NEXT_TO_NOTHING * max(first))))
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


FACTS: tuple[FactFunction, ...] = (losses, sameness, accuracy)

"""Whether the training loss moved at all, and whether it stands where a guess would stand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.robust import block_medians, running_median, slope_t
from rca.facts.training.curves import config_number, curve
from rca.facts.training.divergence import Shape, diverged_from, loss_shape
from rca.facts.training.loss import uniform_guess
from rca.facts.training.policy import rewarded

CATALOGUE: Mapping[str, str] = {
    "loss.improvement": "share of the first loss level that was gained by the end of the run",
    "loss.plateau": "less than 2 % improvement over the run and no falling trend",
    "loss.plateau_late": "the loss improved first, but less than 1 % over the last half of the run",
    "loss.ln_k": "number of outcomes K when a plateau stands at ln K: the loss of a uniform guess",
    "loss.ln_k_known": "that K is the configured number of classes or vocabulary size, or one over the accuracy",
}

LONG_ENOUGH = 50
"""Steps after which a healthy run shows progress, warm-up or not; or a tenth of the plan, or an epoch."""
NO_LEARNING = 0.02
"""Less than 2 % improvement is no learning (FACTS 4, runmedic)."""
COMMON_K = (2, 10, 100, 1000, 30522, 32000, 50257, 128256, 151936)
"""Class counts of common data sets and vocabularies of common tokenizers, tried when the configuration has none."""


def improvement(shape: Shape) -> tuple[float, float]:
    """Return the share gained from the first to the last level, and to the best tenth of the run."""
    values = shape.curve.value
    count = len(values)
    head = int(np.clip(count // 20, 3, 5))
    start = float(np.median(values[:head]))
    end = float(np.median(values[-max(3, count // 10) :]))
    blocks = block_medians(values, 50)
    best = float(np.min(running_median(blocks, max(3, len(blocks) // 10))))
    scale = abs(start) or 1.0
    return (start - end) / scale, (start - best) / scale


def is_flat(shape: Shape) -> bool:
    """Say whether nothing was learned: neither the level nor the trend fell by 2 %, beyond what the noise allows."""
    gained, at_best = improvement(shape)
    values = shape.curve.value
    scale = abs(shape.start) or 1.0
    slope, significance = slope_t(values)
    falls = significance < -2.5 and -slope * len(values) > NO_LEARNING * scale
    doubt = 3 * shape.noise / scale
    return (
        gained < NO_LEARNING + doubt / 3**0.5
        and at_best < 2.5 * NO_LEARNING + doubt / max(3.0, len(values) / 10) ** 0.5
        and not falls
        and diverged_from(shape) is None
    )


def surrogate(events: EventTable, shape: Shape) -> bool:
    """Say whether the loss is that of a policy gradient: it wavers around zero however well the policy does."""
    values = shape.curve.value
    return rewarded(events) and float(np.median(np.abs(values))) < 2 * float(np.std(values))


def shows_the_start(events: EventTable, shape: Shape) -> bool:
    """Say whether the curve begins with the run and is long enough to expect progress: an excerpt proves nothing."""
    line = shape.curve
    first, last = line.step_at(0), line.step_at(-1)
    if first is None or last is None:
        return len(line) >= 20
    gaps = np.diff(line.step)
    usual = float(np.median(gaps[gaps > 0])) if (gaps > 0).any() else 1.0
    planned = config_number(events, "max_steps") or math.inf
    epochs = curve(events, "epoch")
    covered = epochs is not None and epochs.finite.any() and float(np.ptp(epochs.value[epochs.finite])) >= 1
    long_enough = last - first >= LONG_ENOUGH or last - first >= 0.1 * planned or covered
    return bool(first <= max(100.0, 3 * usual) and long_enough)


def plateau(events: EventTable) -> Iterator[Fact]:
    """Did the loss improve, and by how much?"""
    shape = loss_shape(events)
    if shape is None or len(shape.curve) < 5 or surrogate(events, shape):
        return
    line = shape.curve
    gained, at_best = improvement(shape)
    seen = line.event_id[[0, len(line) - 1]]
    change = f"{percent(gained)} better" if gained >= 0 else f"{number(-gained)} times its start higher"
    says = (
        f"Over {len(line)} logged losses the level went from {number(shape.start)} to {number(shape.end)}: {change} "
        f"({percent(max(at_best, 0.0))} better at best)."
    )
    yield from emit("loss.improvement", gained, says, events=seen)
    if len(line) < 10 or not shows_the_start(events, shape):
        return
    flat = is_flat(shape)
    yield from emit("loss.plateau", flat, says, events=seen)
    yield from _late(shape, flat=flat, gained=gained)
    if flat:
        yield from _ln_k(events, shape)


def _late(shape: Shape, *, flat: bool, gained: float) -> Iterator[Fact]:
    values = shape.curve.value
    if len(values) < 20:
        return
    half = values[len(values) // 2 :]
    quarter = max(3, len(half) // 4)
    first, last = float(np.median(half[:quarter])), float(np.median(half[-quarter:]))
    _, significance = slope_t(half)
    stalled = not flat and gained >= 0.05 and abs(first - last) < 0.01 * abs(first) and abs(significance) < 4
    yield from emit(
        "loss.plateau_late",
        stalled,
        f"Over the last half of the run the level went from {number(first)} to {number(last)}.",
        events=shape.curve.event_id[[len(values) // 2, len(values) - 1]],
    )


def _ln_k(events: EventTable, shape: Shape) -> Iterator[Fact]:
    values = shape.curve.value
    level = float(np.median(values[len(values) // 2 :]))
    known = uniform_guess(events)
    candidates = {known[0]} if known is not None else set()
    by_accuracy = _outcomes_by_accuracy(events, level) if not candidates else None
    if by_accuracy is not None:
        candidates.add(by_accuracy)
    plausible = candidates or set(COMMON_K)
    above = 0.05 if candidates else 0.02
    fitting = [k for k in plausible if -0.02 * math.log(k) <= level - math.log(k) <= above * math.log(k)]
    if not fitting:
        return
    best = min(fitting, key=lambda k: abs(level - math.log(k)))
    guess = number(math.log(best))
    says = f"The loss stands at {number(level)}; an even guess among {best} outcomes gives ln({best}) = {guess}."
    seen = shape.curve.event_id[[len(values) - 1, 0]]
    yield from emit("loss.ln_k", best, says, events=seen)
    yield from emit("loss.ln_k_known", bool(candidates), says, events=seen)


def _outcomes_by_accuracy(events: EventTable, level: float) -> int | None:
    """Return the K of a loss at ln K when an accuracy at 1 / K says the same, for K up to 1000."""
    guess = round(math.exp(min(level, 8.0)))
    for name in ("eval_accuracy", "accuracy"):
        line = curve(events, name)
        if line is None or line.finite.sum() < 3 or not 2 <= guess <= 1000:
            continue
        share = float(np.median(line.value[line.finite]))
        share = share / 100 if float(np.max(line.value[line.finite])) > 1.5 else share
        if 0.75 <= share * guess <= 1.33:
            return guess
    return None


FACTS: tuple[FactFunction, ...] = (plateau,)

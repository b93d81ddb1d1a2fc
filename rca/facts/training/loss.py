"""The level of the training loss: where it starts, where it ends, and what a first loss should be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number
from rca.facts.interface import Fact, FactFunction
from rca.facts.model.parameters import vocabulary_rows
from rca.facts.training.curves import Curve, config_number
from rca.facts.training.non_finite import FAR_BELOW, beside, companion, non_finite_loss

CATALOGUE: Mapping[str, str] = {
    "loss.points": "number of logged training losses",
    "loss.first": "first finite training loss",
    "loss.last": "last finite training loss",
    "loss.min": "smallest finite training loss",
    "loss.max": "largest finite training loss",
    "loss.interval": "median distance between two logged losses (steps): what happens between them is invisible",
    "loss.huge": "a finite loss of 1000 or more was logged that is also 50 times the first one",
    "loss.unbounded": "a loss that began above zero falls a thousand times its first value below zero",
    "loss.last_over_ln_vocab": "last finite loss over the same: above 1 the model knows less than nothing",
    "loss.first_over_ln_vocab": "first loss over ln(vocabulary size), or over ln(number of classes) for a classifier",
    "loss.first_too_high": "the first loss is more than 1.5 times the loss of a uniform guess",
    "loss.suspiciously_low": "a language-model loss below 0.2 nats within the first epoch or the first 500 steps",
}

LARGE_LOSS = 1e3
"""AutoTrainer calls a loss from 1e3 on "large"; only together with a rise, as some losses are sums."""
TOO_LOW_NATS = 0.2
"""Text cannot be predicted that well after one pass: published language models stay above 1.5 nats a token; small
closed tasks reach 0.5."""
LANGUAGE_MODEL_VOCABULARY = 1000
"""A vocabulary from this size on means a language model and not a classifier."""


def levels(events: EventTable) -> Iterator[Fact]:
    """First, last, smallest and largest loss, and how densely it was logged."""
    found = non_finite_loss(events)
    if found is None:
        return
    line = found.curve
    says = f"{len(line)} training losses were logged{line.where()}."
    yield from emit("loss.points", len(line), says, events=line.event_id[:1])
    yield from _interval(line)
    good = line.pick(line.finite & ~found.masked)
    if not len(good):
        return
    low, high = int(np.argmin(good.value)), int(np.argmax(good.value))
    for name, index, words in (
        ("loss.first", 0, "first"),
        ("loss.last", len(good) - 1, "last"),
        ("loss.min", low, "smallest"),
        ("loss.max", high, "largest"),
    ):
        value = float(good.value[index])
        says = f"The {words} finite loss is {number(value)} at {good.place(index)}."
        yield from emit(name, value, says, events=good.event_id[[index]])
    first, top = float(good.value[0]), float(good.value[high])
    yield from emit(
        "loss.huge",
        top >= LARGE_LOSS and top > 50 * abs(first),
        f"The loss reaches {number(top)} after starting at {number(first)}.",
        events=good.event_id[[high]],
    )
    bottom = float(good.value[low])
    yield from emit(
        "loss.unbounded",
        first > 0 and bottom < -FAR_BELOW * max(first, 1.0),
        f"The loss began at {number(first)} and was as low as {number(bottom)} at {good.place(low)}.",
        events=good.event_id[[0, low]],
    )


def _interval(line: Curve) -> Iterator[Fact]:
    steps = line.step[np.isfinite(line.step)]
    gaps = np.diff(steps)
    gaps = gaps[gaps > 0]
    if len(gaps):
        gap = float(np.median(gaps))
        says = f"The loss was logged every {number(gap)} steps."
        yield from emit("loss.interval", gap, says, unit="step", events=line.event_id[:2])


def uniform_guess(events: EventTable) -> tuple[int, str] | None:
    """Return the number of outcomes a prediction chooses from and its name, from the configuration.

    Configurations of language models carry a number of labels too (a default of the library), so it only counts for a
    classifier, or where nothing speaks of tokens.
    """
    classes = config_number(events, "num_labels")
    vocabulary = config_number(events, "vocab_size")
    tokens = any(events.config(key) is not None for key in ("seq_length", "max_position_embeddings", "vocab_size"))
    if classes is not None and classes >= 2 and (_classifier(events) or not tokens):
        return int(classes), "classes"
    if vocabulary is not None and vocabulary >= 2:
        return int(vocabulary), "vocabulary entries"
    rows = vocabulary_rows(events) if classes is None else None
    return None if rows is None else (rows, "vocabulary entries")


def _classifier(events: EventTable) -> bool:
    keys = ("architectures", "problem_type", "task", "task_type")
    texts = [item.text.lower() for key in keys for item in events.named(key, kind="config")]
    return any("classif" in text or "seq_cls" in text for text in texts)


def start_level(events: EventTable) -> Iterator[Fact]:
    """The first and the last loss against that of a uniform guess: a fresh model should start near ln(K)."""
    found = non_finite_loss(events)
    outcomes = uniform_guess(events)
    if found is None or outcomes is None or found.first == 0:
        return
    line = found.curve
    first_step = line.step_at(0)
    count, what = outcomes
    first, guess = float(line.value[0]), math.log(count)
    good = line.pick(line.finite)
    if len(good) >= 2 and good.value[-1] > 0:
        last = float(good.value[-1])
        says = f"The last loss is {number(last)}; an even guess among {count} {what} gives {number(guess)}."
        yield from emit("loss.last_over_ln_vocab", last / guess, says, unit="x", events=good.event_id[-1:])
    # Training lowers the loss: a late first point below the guess tells nothing, one above it tells all the more.
    if first_step is not None and first_step > 100 and first <= 1.5 * guess:
        return
    if first <= 0:
        return
    says = f"The first loss is {number(first)}; an even guess among {count} {what} gives ln({count}) = {number(guess)}."
    yield from emit("loss.first_over_ln_vocab", first / guess, says, unit="x", events=line.event_id[:1])
    yield from emit("loss.first_too_high", first > 1.5 * guess, says, events=line.event_id[:1])


def too_good(events: EventTable) -> Iterator[Fact]:
    """A language-model loss that is lower than text allows after one look at it."""
    found = non_finite_loss(events)
    outcomes = uniform_guess(events)
    if found is None or outcomes is None or outcomes[0] < LANGUAGE_MODEL_VOCABULARY:
        return
    good = found.curve.pick(found.curve.finite & ~found.masked & (found.curve.value != 0))
    if len(good) < 5 or float(good.value[0]) < 1.0:
        return
    early = _first_epoch(events, good)
    if not early.any():
        return
    picked = good.pick(early)
    window = min(5, len(picked))
    level = np.convolve(picked.value, np.ones(window) / window, mode="valid")
    low = int(np.argmin(level)) + window - 1
    value = float(level.min())
    says = (
        f"The loss averages {number(value)} nats a token around {picked.place(low)}, in the first epoch or 500 steps."
    )
    yield from emit("loss.suspiciously_low", value < TOO_LOW_NATS, says, events=picked.event_id[[low, 0]])


def _first_epoch(events: EventTable, line: Curve) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    epoch = companion(events, "epoch", line)
    index = beside(line, epoch)
    if epoch is not None and index is not None and (index >= 0).all():
        return np.asarray(epoch.value[index] - epoch.value[0] <= 1.0)
    return np.asarray(line.step <= 500)


FACTS: tuple[FactFunction, ...] = (levels, start_level, too_good)

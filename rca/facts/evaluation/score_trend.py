"""Scores of training: do rewards, accuracies, average precision rise, do error rates and distances fall?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number
from rca.facts.interface import Fact, FactFunction
from rca.facts.training.curves import Curve, curve
from rca.facts.training.divergence import loss_shape
from rca.facts.training.plateau import improvement, shows_the_start

CATALOGUE: Mapping[str, str] = {
    "score.improving": "a score ends better than its start by 5 % of it (or by 0.02, where more is better)",
    "run.gained_nothing": "from its start on the loss fell by less than 5 %, and no score and no validation improved",
    "score.constant": "a score of training is the same at every one of ten or more points",
}

_SCORES = re.compile(
    r"(?:^|[/_.\s])(?:reward\w*|returns?|episode_return|ep_rew_mean|acc(?:uracy)?|m?ap(?:50)?|map50-95|f1|auc|auroc|m?iou|dice|"
    r"bleu|rouge\w*|psnr|ssim|success(?:_rate)?|win_?rate)(?:$|[/_.\s(@])",
    re.I,
)
_ERRORS = re.compile(
    r"(?:^|[/_.\s])(?:fid|kid|wer|cer|ter|eer|mae|rmse|perplexity|ppl|bpd|bpc|err(?:or)?(?:_rate)?|val_error|test_error|"
    r"error_rate|distance)(?:$|[/_.\s(@])",
    re.I,
)
"""Scores of which less is better."""
_SPREAD = re.compile(r"std|var|min$|max$|loss", re.I)
_FEWEST = 6
GAIN = 0.05
"""Less is within what another seed changes."""
_CONSTANT = 10


def gained_nothing(events: EventTable) -> Iterator[Fact]:
    """Is there anything that got better?"""
    shape = loss_shape(events)
    if shape is None or len(shape.curve) < _CONSTANT or not shows_the_start(events, shape):
        return
    gained, _at_best = improvement(shape)
    risen = any(fact.name == "score.improving" and fact.value for fact in scores(events))
    validation = curve(events, "eval_loss")
    known = validation.value[validation.finite] if validation is not None else np.array([])
    fallen = len(known) >= 2 and known[0] > 0 and float(known.min()) <= (1 - GAIN) * float(known[0])
    says = f"The loss went from {number(shape.start)} to {number(shape.end)}, and nothing else improved."
    nothing = gained < GAIN and not risen and not fallen
    yield from emit("run.gained_nothing", nothing, says, events=shape.curve.event_id[[0, -1]])


def scores(events: EventTable) -> Iterator[Fact]:
    """Does any score rise, and is one of them stuck?"""
    found = [
        line.pick(line.finite)
        for name in events.metric_names
        if _SCORES.search(name) and not _SPREAD.search(name) and (line := curve(events, name)) is not None
    ]
    told = [(line, *_ends(line)) for line in found if len(line) >= _FEWEST]
    if not told:
        yield from _errors(events)
        return
    line, start, end = max(told, key=lambda item: (item[2] - item[1]) / (abs(item[1]) or 1.0))
    says = f"The {line.name} went from {number(start)} to {number(end)}."
    seen = line.event_id[[0, -1]]
    yield from emit("score.improving", end - start >= max(0.02, 0.05 * abs(start)), says, events=seen)
    stuck = [line for line, *_rest in told if len(line) >= _CONSTANT and float(np.ptp(line.value)) == 0.0]
    if stuck:
        says = f"The {stuck[0].name} is {number(float(stuck[0].value[0]))} at every one of {len(stuck[0])} points."
        yield from emit("score.constant", True, says, events=stuck[0].event_id[[0, -1]])


def _errors(events: EventTable) -> Iterator[Fact]:
    """Does a score of which less is better fall?"""
    named = [name for name in events.metric_names if _ERRORS.search(name) and not _SPREAD.search(name)]
    lines = [line.pick(line.finite) for name in named if (line := curve(events, name)) is not None]
    told = [(line, *_ends(line)) for line in lines if len(line) >= _FEWEST and float(line.value.min()) >= 0]
    if not told:
        return
    line, start, end = min(told, key=lambda item: item[2] / item[1] if item[1] else 1.0)
    says = f"The {line.name} went from {number(start)} to {number(end)}."
    yield from emit("score.improving", end <= (1 - GAIN) * start, says, events=line.event_id[[0, -1]])


def _ends(line: Curve) -> tuple[float, float]:
    width = max(2, len(line) // 10)
    return float(np.median(line.value[:width])), float(np.median(line.value[-width:]))


FACTS: tuple[FactFunction, ...] = (scores, gained_nothing)

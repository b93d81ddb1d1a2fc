"""The norm of all parameters over the run: do they move at all, and do they shrink away?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number
from rca.facts.interface import Fact, FactFunction
from rca.facts.training.curves import Curve, curve
from rca.facts.training.learning_rate_range import adapters

CATALOGUE: Mapping[str, str] = {
    "parameters.total_norm_ratio": "norm of all parameters at the end over that at the start (x)",
    "parameters.total_norm_constant": "that norm is the same in every digit at twenty or more points",
    "parameters.updates_zero": "the logged size of the updates is exactly zero at every point",
}

_NORM = re.compile(
    r"^(?:train/|optim/|model/)?(?:global[_ ]norm[_ ]params|param(?:eter)?s?[_ /](?:total_|global_)?(?:l2_)?norm|"
    r"weights?[_ /](?:l2_)?norm|l2_norm/(?:param|weight)s?/global|model_norm|w_?norm|theta_norm|"
    r"\|{1,2}(?:w|θ|theta|params?)\|{1,2}|(?:param(?:eter)?s?|weights?)[_ /](?:check)?sum)$",
    re.I,
)
_MOVED = re.compile(
    r"^(?:train/|optim/|model/)?(?:(?:d|delta[_ ]?)w|\|{1,2}(?:dw|Δθ)\|{1,2}|(?:param(?:eter)?s?|weights?)[_ /]"
    r"(?:change|delta|diff|update)(?:[_ /]norm)?|(?:max|total|mean)[_ ](?:param|weight)[_ ](?:change|delta|diff)|"
    r"update[_ ]norm)$",
    re.I,
)
_FEWEST = 20
"""Points: over so many even a small rate moves the digits that programs print."""
_FEWEST_UPDATES = 5


def total(events: EventTable) -> Iterator[Fact]:
    """Compare the norm at the end with that at the start."""
    named = (curve(events, name) for name in events.metric_names if _NORM.match(name))
    known = [line.pick(line.finite) for line in named if line is not None]
    line: Curve | None = max(known, key=len, default=None)
    if line is None or len(line) < _FEWEST or line.value[0] <= 0:
        return
    first, last = float(line.value[0]), float(np.median(line.value[-3:]))
    says = f"The norm of all parameters ({line.name}) went from {number(first)} to {number(last)}."
    seen = line.event_id[[0, -1]]
    yield from emit("parameters.total_norm_ratio", last / first, says, unit="x", events=seen)
    # Beside a frozen model the norm of a few adapters does not show.
    if not adapters(events):
        same = float(np.ptp(line.value)) == 0.0
        says = f"The norm of all parameters ({line.name}) lies between {line.value.min()} and {line.value.max()}."
        yield from emit("parameters.total_norm_constant", same, says, events=seen)


def updates(events: EventTable) -> Iterator[Fact]:
    """Say whether a program that prints how far the weights moved prints zero all the time."""
    for name in events.metric_names:
        line = curve(events, name) if _MOVED.match(name) else None
        if line is None or len(line) < _FEWEST_UPDATES or not line.finite.all():
            continue
        still = bool((line.value == 0).all())
        says = f"The size of the updates ({name}) is {'0 at all' if still else 'not 0 at some of'} {len(line)} points."
        yield from emit("parameters.updates_zero", still, says, events=line.event_id[[0, -1]])
        return


FACTS: tuple[FactFunction, ...] = (total, updates)

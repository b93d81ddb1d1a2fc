"""From the figures of two arms of a loop to a verdict. Most figures are counts, which need no statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal, NamedTuple

from rca.experiments.interface import RunProfile
from rca.rules.schema import LoopRule

Figures = Sequence[Mapping[str, float]]
"""One set of figures a repetition."""
_LEAST = 1e-9


class Contrast(NamedTuple):
    """Control against treatment over the pairs."""

    value: float
    low: float
    high: float
    """95 % interval; equal to the value where every pair says the same."""
    pairs: int


class Reproduction(NamedTuple):
    """Whether a control arm shows what the run showed, and the figures that say so."""

    shown: bool
    says: str


def mean(figures: Figures, name: str) -> float:
    """Return the mean of one figure."""
    return fmean(one[name] for one in figures)


def contrast(rule: LoopRule, metric: str, control: Figures, treatment: Figures) -> Contrast:
    """Return the ratio (geometric mean) or difference of the arms with its interval (paired, Student's t)."""
    from scipy.special import stdtrit

    ratio = rule.compares == "ratio"
    pairs = [(one[metric], other[metric]) for one, other in zip(control, treatment, strict=True)]
    if ratio:
        values = [math.log(max(one, _LEAST) / max(other, _LEAST)) for one, other in pairs]
    else:
        values = [one - other for one, other in pairs]
    middle, count = fmean(values), len(values)
    half = 0.0
    if count > 1:
        spread = math.sqrt(sum((value - middle) ** 2 for value in values) / (count - 1) / count)
        half = float(stdtrit(count - 1, 0.975)) * spread
    ends = (middle, middle - half, middle + half)
    value, low, high = (math.exp(min(end, 50.0)) for end in ends) if ratio else ends
    return Contrast(value, low, high, count)


def decide(rule: LoopRule, found: Contrast) -> Literal["confirmed", "mitigates", "refuted", "inconclusive"]:
    """Confirm or refute only where the whole interval agrees."""
    if found.low >= rule.at_least:
        return "confirmed"
    if found.high < rule.below:
        return "refuted"
    return "mitigates" if found.low >= rule.below else "inconclusive"


def reproduction(rule: LoopRule, figures: Figures, profile: RunProfile) -> Reproduction:
    """Say whether the control reaches the figures of the symptom and agrees with what the run recorded."""
    says: list[str] = []
    shown = True
    for name, least in rule.shows.items():
        value = mean(figures, name)
        shown = shown and value >= least
        if not rule.timed:
            says.append(f"{label(name)} is {number(value)} ({number(least)} or more would show the symptom)")
    for name, field in rule.agrees.items():
        value, observed = mean(figures, name), getattr(profile, field)
        if observed is None:
            continue
        near = observed > 0 and value > 0 and 1 / rule.factor <= value / observed <= rule.factor
        shown = shown and near
        if not rule.timed:
            says.append(f"{label(name)} is {number(value)}, the run recorded {number(float(observed))}")
    return Reproduction(shown, "; ".join(says))


def label(name: str) -> str:
    """Return the name of a figure for a sentence."""
    return _LABELS.get(name, name.replace("_", " "))


def number(value: float) -> str:
    """Return a figure with three digits."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


_LABELS = {
    "seconds_per_step": "time of a step in s",
    "wait_share": "share of the time spent waiting for data",
    "pad_share": "share of padding",
    "positions": "number of positions computed for each useful one",
    "syncs_per_step": "number of values that the host reads in a step",
    "launches_per_step": "number of operations launched in a step",
    "launch_share": "share of the step that launching takes",
    "growth_gib": "memory that a step leaves behind in GiB",
    "peak_gib": "peak memory of forward and backward pass in GiB",
    "compilations": "number of compilations in twelve steps",
    "gave_up": "reaching the limit of compilations",
    "gflops": "arithmetic of an answer in GFLOP",
    "growth": "cost of the last quarter of an answer over that of the first",
    "varying": "share of repetitions with another output",
    "dropout": "dropout rate",
    "repeat_share": "share of repeated 3-grams",
    "stray_share": "share of steps that the language does not allow",
    "lost_share": "share of what had been learnt that is lost",
    "learnt_share": "share of the chance loss that the decoder had learnt away",
    "padded_differ": "share of padded prompts that are continued in another way than alone",
}

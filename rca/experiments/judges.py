"""From paired outcomes to a verdict: the decision rules, fixed before their error rates were measured.

Everything is in units of `g`, the share of the learnable gap that an arm lost: (loss - reference) / (chance -
reference), 0 for the known-good recipe, 1 for an arm that learnt nothing, clipped to [-0.2, 1.3]; an arm that ends
without a finite loss has 1.3. "Does not turn NaN any more" is not enough: a treatment must bring learning back.

Bayes margin rule with 3 to 5 paired seeds, measured on 61 case-arm pairs: 0.5 % false confirmations, 1.7 % false
refutations, 19 % inconclusive (a paired t-test with 5 seeds confirms 12.5 % wrongly). Binary outcomes (finite or not):
Beta-Binomial with a Bayes factor of 6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Literal, NamedTuple

FEWEST, MOST = 3, 5
"""Paired seeds: where the sequential rule starts and ends."""
MARGIN = 0.075
"""A gap must be above this with 95 % probability."""
USEFUL = 0.15
"""Smallest mean gap that confirms; a gap below it with 95 % probability refutes."""
CERTAINTY = 0.95
RECOVERED = 0.6
"""Share of the symptom that a cause's own treatment takes away; less only mitigates."""
PRIOR_SD = 0.10
"""Prior for the standard deviation of a gap, with the weight of two observations."""
BAYES_FACTOR = 6.0
LOWEST, HIGHEST = -0.2, 1.3

Decision = Literal["confirmed", "mitigates", "refuted", "undecided"]


class Gap(NamedTuple):
    """What the treatment takes away, over the pairs seen so far."""

    mean: float
    low: float
    high: float
    """95 % interval."""
    above_margin: float
    """Probability that the true gap is above `MARGIN`."""
    below_useful: float
    """Probability that the true gap is below `USEFUL`."""
    recovered: float
    """Gap / what the control lost beyond what is attainable."""
    pairs: int


class Judgement(NamedTuple):
    """A decision and the numbers behind it."""

    decision: Decision
    gap: Gap
    factor: float | None = None
    """Bayes factor of the binary rule, where it was used."""


def lost_gap(loss: float, reference: float, chance: float) -> float:
    """Return `g` of one arm; `chance` is the loss of a model that knows nothing."""
    if not math.isfinite(loss):
        return HIGHEST
    return min(HIGHEST, max(LOWEST, (loss - reference) / (chance - reference)))


def gap(control: Sequence[float], treatment: Sequence[float], *, attainable: float = 0.0) -> Gap:
    """Return the paired difference of two arms with its interval (Student's t, n + 1 degrees of freedom).

    `attainable` is what the treatment could reach at best: 0, or what the run's own settings lose without a planted
    fault.
    """
    from scipy.stats import t as student

    differences = [one - other for one, other in zip(control, treatment, strict=True)]
    count = len(differences)
    mean = fmean(differences)
    spread = sum((value - mean) ** 2 for value in differences)
    scale = math.sqrt((2 * PRIOR_SD**2 + spread) / (count + 1) / count)
    freedom = count + 1
    half = float(student.ppf(0.975, freedom)) * scale
    return Gap(
        mean=mean,
        low=mean - half,
        high=mean + half,
        above_margin=float(student.sf((MARGIN - mean) / scale, freedom)),
        below_useful=float(student.cdf((USEFUL - mean) / scale, freedom)),
        recovered=mean / max(fmean(control) - max(attainable, 0.0), 1e-9),
        pairs=count,
    )


def judge(control: Sequence[float], treatment: Sequence[float], *, attainable: float = 0.0) -> Judgement:
    """Decide on the pairs seen so far; `undecided` asks for another pair (up to `MOST`)."""
    found = gap(control, treatment, attainable=attainable)
    decision: Decision = "undecided"
    if found.above_margin >= CERTAINTY and found.mean >= USEFUL:
        decision = "confirmed" if found.recovered >= RECOVERED else "mitigates"
    elif found.below_useful >= CERTAINTY:
        decision = "refuted"
    return Judgement(decision, found)


def judge_binary(control: Sequence[bool], treatment: Sequence[bool], found: Gap, lost: Sequence[float]) -> Judgement:
    """Decide on a yes-or-no symptom (not finite, crash), then ask that the treated arm still learns.

    `lost` is `g` of the treated arm. Three of three against none of three has a Bayes factor of 8.75 and at worst
    1.6 % false confirmations.
    """
    failures, treated = sum(control), sum(treatment)
    factor = binary_factor(failures, treated, len(control))
    decision: Decision = "undecided"
    if factor >= BAYES_FACTOR and treated == 0:
        decision = "confirmed" if fmean(lost) < 1 - RECOVERED else "mitigates"
    elif treated >= 2 and treated >= failures:
        decision = "refuted"
    return Judgement(decision, found, factor)


def binary_factor(control: int, treatment: int, pairs: int) -> float:
    """Return the Bayes factor for two failure rates against one common rate (uniform priors)."""

    def beta(failures: int, trials: int) -> float:
        return math.exp(math.lgamma(failures + 1) + math.lgamma(trials - failures + 1) - math.lgamma(trials + 2))

    return beta(control, pairs) * beta(treatment, pairs) / beta(control + treatment, 2 * pairs)


def harmful(found: Gap) -> bool:
    """Whether the treatment surely does not help and on average makes things worse."""
    return found.below_useful >= CERTAINTY and found.mean <= -MARGIN

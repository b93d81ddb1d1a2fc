"""From paired outcomes to a verdict: the decision rules of one look at the pairs. `trial` looks repeatedly.

Everything is in units of `g`, the share of the learnable gap that an arm lost: (loss - reference) / (chance -
reference), 0 for the known-good recipe, 1 for an arm that learnt nothing, clipped to [-0.2, 1.3]; an arm that ends
without a finite loss has 1.3. "Does not turn NaN any more" is not enough: a treatment must bring learning back.

Bayes margin rule: Student's t with a weak prior for the spread. Where seeds fall into two groups (the failure strikes
some of them), a mean and a spread describe nothing: there the seeds that failed are counted as well and must differ by
a Bayes factor of 16. Without that count, 10 to 25 % of treatments that do nothing would be confirmed on such trainings.
A yes-or-no symptom (not finite, crash) is judged by the count alone and asks that the treated arm still learns.

How often the rules err, and over several experiments of one investigation: see `rca.experiments.trial`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Literal, NamedTuple

FEWEST, MOST, MOST_NOISY = 3, 5, 8
"""Paired seeds: where the sequential rule starts, where it ends, and where it ends when seeds fall into two groups or
the mean would confirm and only its uncertainty forbids it."""
MARGIN = 0.075
"""A gap must be above this to confirm."""
USEFUL = 0.15
"""Smallest mean gap that confirms; a gap surely below it refutes."""
CERTAINTY = 0.95
"""Probability with which a gap must be below `USEFUL` to refute."""
CONFIRMING = 0.975
"""Probability with which a gap must be above `MARGIN` to confirm: a wrong confirmation does more harm."""
RECOVERED = 0.6
"""Share of the symptom that a cause's own treatment takes away; less only mitigates."""
PRIOR_SD = 0.10
"""Prior for the standard deviation of a gap, with the weight of two observations."""
BAYES_FACTOR = 6.0
"""For counts where every seed of an arm did the same."""
BAYES_FACTOR_MIXED = 16.0
"""For counts where they did not."""
APART = 0.3
"""Distance in `g` between neighbouring seeds that makes two groups of them."""
LOWEST, HIGHEST = -0.2, 1.3

Decision = Literal["confirmed", "mitigates", "refuted", "undecided", "invalid"]


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
    """Bayes factor of the counts, where they were used."""
    most: int = MOST
    """Pairs after which an undecided comparison ends."""
    counts: tuple[int, int] | None = None
    """Seeds that failed, untreated and treated, where they were counted."""


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
    from scipy.special import stdtr, stdtrit

    differences = [one - other for one, other in zip(control, treatment, strict=True)]
    count = len(differences)
    mean = fmean(differences)
    spread = sum((value - mean) ** 2 for value in differences)
    scale = math.sqrt((2 * PRIOR_SD**2 + spread) / (count + 1) / count)
    freedom = count + 1
    half = float(stdtrit(freedom, 0.975)) * scale
    return Gap(
        mean=mean,
        low=mean - half,
        high=mean + half,
        above_margin=float(stdtr(freedom, (mean - MARGIN) / scale)),
        below_useful=float(stdtr(freedom, (USEFUL - mean) / scale)),
        recovered=mean / max(fmean(control) - max(attainable, 0.0), 1e-9),
        pairs=count,
    )


def judge(
    control: Sequence[float],
    treatment: Sequence[float],
    *,
    attainable: float = 0.0,
    further: Sequence[float] = (),
) -> Judgement:
    """Decide on the pairs seen so far; `undecided` asks for another pair (up to `Judgement.most`).

    `further` are control seeds without a partner: they tell whether the control falls into two groups.
    """
    found = gap(control, treatment, attainable=attainable)
    groups = two_groups([*control, *further]) or two_groups(treatment)
    most = MOST_NOISY if groups or found.mean >= USEFUL else MOST
    factor, counts = None, None
    decision: Decision = "undecided"
    if found.above_margin >= CONFIRMING and found.mean >= USEFUL:
        decision = "confirmed" if found.recovered >= RECOVERED else "mitigates"
        if groups:
            middle = max(*control, *treatment) / 2
            failures, treated = (sum(value > middle for value in arm) for arm in (control, treatment))
            factor, counts = binary_factor(failures, treated, len(control)), (failures, treated)
            if factor < BAYES_FACTOR_MIXED:
                decision = "undecided"
    elif found.below_useful >= CERTAINTY:
        decision = "refuted"
    return Judgement(decision, found, factor, most, counts)


def judge_binary(
    control: Sequence[bool],
    treatment: Sequence[bool],
    found: Gap,
    lost: Sequence[float],
    *,
    further: Sequence[bool] = (),
) -> Judgement:
    """Decide on a yes-or-no symptom (not finite, crash), then ask that the treated arm still learns.

    `lost` is `g` of the treated arm, `further` are control seeds without a partner. Three of three against none of
    three has a Bayes factor of 8.75, four of four against none 25.
    """
    failures, treated = sum(control), sum(treatment)
    factor = binary_factor(failures, treated, len(control))
    mixed = len({*control, *further}) > 1 or len(set(treatment)) > 1
    decision: Decision = "undecided"
    if factor >= (BAYES_FACTOR_MIXED if mixed else BAYES_FACTOR) and failures > treated:
        learns = fmean(lost) < 1 - RECOVERED
        decision = "confirmed" if learns and treated * 4 <= len(treatment) else "mitigates"
    elif treated >= 2 and treated >= failures:
        decision = "refuted"
    return Judgement(decision, found, factor, MOST_NOISY if failures > treated else MOST, (failures, treated))


def binary_factor(control: int, treatment: int, pairs: int) -> float:
    """Return the Bayes factor for two failure rates against one common rate (uniform priors)."""

    def beta(failures: int, trials: int) -> float:
        return math.exp(math.lgamma(failures + 1) + math.lgamma(trials - failures + 1) - math.lgamma(trials + 2))

    return beta(control, pairs) * beta(treatment, pairs) / beta(control + treatment, 2 * pairs)


def two_groups(values: Sequence[float]) -> bool:
    """Whether the seeds fall into two groups, `APART` from each other."""
    return any(above - below > APART for below, above in pairwise(sorted(values)))


def harmful(found: Gap) -> bool:
    """Whether the treatment surely does not help and on average makes things worse."""
    return found.below_useful >= CERTAINTY and found.mean <= -MARGIN


def reproduced(shows: Sequence[bool], *, most: int = MOST) -> bool | None:
    """Whether the control shows the symptom, one flag a seed; None asks for another seed.

    Ends as soon as one answer leads by two seeds, at the latest after `most` (an odd number) with the majority. A
    control that shows the symptom in 95 % of its seeds is missed in 0.3 % of the cases, one that shows it in 5 % is
    taken for reproduced in 0.3 %; for 90 and 10 % it is 1.5 %, for 80 and 20 % 7.3 % (exact). A control that clearly
    shows it, or clearly does not, takes two seeds.
    """
    yes = sum(shows)
    no = len(shows) - yes
    if abs(yes - no) < 2 and len(shows) < most:
        return None
    return yes >= no

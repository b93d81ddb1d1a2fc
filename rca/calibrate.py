"""Labelled incidents to a calibration: how sure the rules may be of themselves.

Two numbers are fitted by maximum likelihood of the right answers: a temperature that divides all log-odds (Guo et al.,
"On Calibration of Modern Neural Networks", ICML 2017) and the head start of `unknown`. Then the answers `unknown` are
counted: how many were right. All are held near the authors' values by priors, so that a handful of incidents cannot
move them far.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rca.errors import UsageError
from rca.evaluate import CalibratedScore, CaseOutcome, score
from rca.hypotheses.decide import best
from rca.hypotheses.score import NONE, UNKNOWN, probabilities
from rca.rules.schema import Calibration

FOLDS = 5
FEWEST = 20
"""Incidents below which a fit would follow chance."""
_TEMPERATURE_SPREAD = 0.4
"""Standard deviation of the prior of log temperature: most likely between 2/3 and 3/2."""
_UNKNOWN_SPREAD = 0.4
"""Standard deviation of the prior of the head start of `unknown`, nats."""
_UNLISTED = (1, 3)
"""Incidents of an unlisted and of a listed cause, among those that nothing explained, that are assumed beforehand."""
_LEAST = 1e-4
"""Probability granted to a right answer that had no support at all, so that one miss does not rule the fit."""


def fit(outcomes: Sequence[CaseOutcome]) -> Calibration:
    """Return the calibration under which the accepted answers are most likely. Raises UsageError for few incidents."""
    if len(outcomes) < FEWEST:
        raise UsageError(f"{len(outcomes)} incidents are too few to calibrate on; label at least {FEWEST}")
    from scipy.optimize import minimize

    def loss(point: Sequence[float]) -> float:
        log_temperature, unknown = point
        trial = Calibration(temperature=math.exp(log_temperature), unknown=unknown)
        likelihood = sum(math.log(max(_right(item, trial), _LEAST)) for item in outcomes)
        prior = (log_temperature / _TEMPERATURE_SPREAD) ** 2 / 2 + (unknown / _UNKNOWN_SPREAD) ** 2 / 2
        return float(prior - likelihood)

    found = minimize(loss, x0=[0.0, 0.0], method="Nelder-Mead")
    log_temperature, unknown = (float(value) for value in found.x)
    fitted = Calibration(temperature=round(math.exp(log_temperature), 4), unknown=round(unknown, 4))
    open_ended = [item for item in applied(outcomes, fitted) if item.verdict == UNKNOWN]
    share = (sum(item.right for item in open_ended) + _UNLISTED[0]) / (len(open_ended) + sum(_UNLISTED))
    return fitted.model_copy(update={"unlisted": round(share, 4), "incidents": len(outcomes)})


def applied(outcomes: Sequence[CaseOutcome], calibration: Calibration) -> Iterator[CaseOutcome]:
    """Return the same incidents as judged by rules alone under another calibration."""
    for item in outcomes:
        shares = probabilities(item.scores, calibration)
        verdict, probability = best(shares, calibration)
        others = sorted(shares, key=lambda name: (-shares[name], name))
        ranked = [verdict, *(name for name in others if name not in {verdict, NONE, UNKNOWN})]
        yield item.model_copy(update={"verdict": verdict, "probability": probability, "ranked": tuple(ranked)})


def cross_validated(outcomes: Sequence[CaseOutcome]) -> tuple[CaseOutcome, ...]:
    """Return every incident as judged under a calibration that was fitted on the other folds."""
    from sklearn.model_selection import KFold

    judged: dict[str, CaseOutcome] = {}
    for train, test in KFold(FOLDS, shuffle=True, random_state=0).split(list(outcomes)):
        fitted = fit([outcomes[index] for index in train])
        judged.update({item.case: item for item in applied([outcomes[index] for index in test], fitted)})
    return tuple(judged[item.case] for item in outcomes)


def calibrated(outcomes: Sequence[CaseOutcome]) -> CalibratedScore:
    """Return the calibration fitted on all incidents and what it is worth on incidents that it has not seen."""
    fitted = fit(outcomes)
    on_all, held_out = score(tuple(applied(outcomes, fitted))), score(cross_validated(outcomes))
    return CalibratedScore(
        calibration=fitted,
        fitted_top1=on_all.top1,
        fitted_error=on_all.calibration_error,
        held_out_top1=held_out.top1,
        held_out_error=held_out.calibration_error,
    )


def _right(item: CaseOutcome, calibration: Calibration) -> float:
    """Return the probability of the right answer; a known cause without support is part of what nothing explains."""
    shares = probabilities(item.scores, calibration)
    named = sum(share for name, share in shares.items() if name in item.accepted and name != UNKNOWN)
    if UNKNOWN in item.accepted:
        return named + calibration.unlisted * shares[UNKNOWN]
    return named or (1 - calibration.unlisted) * shares[UNKNOWN]

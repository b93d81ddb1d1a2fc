"""How much an experiment would tell, and what its outcome does to the probabilities."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from rca.diagnosis import ExperimentVerdict
from rca.rules.schema import ExperimentRule, Outcome

TEMPER = 0.15
"""Share of a uniform distribution mixed into every likelihood: with 20 % of unexpected outcomes, untempered inference
is right in only 73 to 86 % of the cases where it claims 90 %."""
TEMPER_UNREPRODUCED = 0.8
"""The same share where the control did not show the symptom: a tiny model on other data misses a symptom of a real run
for many reasons that no training in the lab has, so this is weak evidence, and never a refutation."""
OTHER = "other"
"""Every cause that is not listed."""
OUTCOMES: tuple[Outcome, ...] = ("confirmed", "refuted", "inconclusive")
OUTCOME_OF: Mapping[ExperimentVerdict, Outcome] = {
    "confirmed": "confirmed",
    "refuted": "refuted",
    "mitigates": "inconclusive",
    "inconclusive": "inconclusive",
    "not_reproduced": "inconclusive",
}
"""Verdicts that carry information; the others leave the probabilities alone."""


def likelihood(rule: ExperimentRule, cause: str, outcome: Outcome, *, temper: float = TEMPER) -> float:
    """Return the tempered probability of an outcome under a cause."""
    prediction = rule.predicts.get(cause) or rule.predicts.get(OTHER)
    stated = 1 / len(OUTCOMES) if prediction is None else getattr(prediction, outcome)
    return (1 - temper) * float(stated) + temper / len(OUTCOMES)


def expected_bits(beliefs: Mapping[str, float], rule: ExperimentRule) -> float:
    """Return the expected information of an experiment about the cause, in bits."""
    total = sum(beliefs.values())
    shares = {cause: belief / total for cause, belief in beliefs.items() if belief > 0} if total > 0 else {}
    after = 0.0
    for outcome in OUTCOMES:
        joint = {cause: share * likelihood(rule, cause, outcome) for cause, share in shares.items()}
        chance = sum(joint.values())
        if chance > 0:
            after += chance * _entropy(value / chance for value in joint.values())
    return max(0.0, _entropy(shares.values()) - after)


def updated(
    beliefs: Mapping[str, float], rule: ExperimentRule, outcome: Outcome, *, temper: float = TEMPER
) -> dict[str, float]:
    """Return the beliefs after an outcome (Bayes), with the same total as before."""
    joint = {cause: belief * likelihood(rule, cause, outcome, temper=temper) for cause, belief in beliefs.items()}
    total, mass = sum(beliefs.values()), sum(joint.values())
    return {cause: value * total / mass for cause, value in joint.items()} if mass > 0 else dict(beliefs)


def _entropy(shares: Iterable[float]) -> float:
    return -sum(share * math.log2(share) for share in shares if share > 0)

"""From probabilities to the kind of answer: the leading cause, `unknown` or `none`."""

from __future__ import annotations

from collections.abc import Mapping

from rca.hypotheses.score import NONE, UNKNOWN, Ranking

WEAK = 0.3
"""A leading cause below this probability is not named: the verdict is `unknown`."""


def answer(ranking: Ranking) -> tuple[str, float]:
    """Return the id that the rules alone answer with, and its probability."""
    return best({item.cause.id: item.probability for item in ranking.candidates} | {UNKNOWN: ranking.unknown})


def best(shares: Mapping[str, float]) -> tuple[str, float]:
    """Return the answer to probabilities by id, `unknown` and perhaps `none` among them."""
    leading = max(sorted(set(shares) - {NONE, UNKNOWN}), key=shares.__getitem__, default="")
    kind, probability = decide(leading=shares.get(leading, 0.0), unknown=shares[UNKNOWN], healthy=shares.get(NONE, 0.0))
    return kind or leading, probability


def decide(*, leading: float, unknown: float, healthy: float) -> tuple[str, float]:
    """Return `none`, `unknown`, or the empty string for the leading cause, with the probability of that answer."""
    if healthy > max(leading, unknown):
        return NONE, healthy
    if unknown >= leading or leading < WEAK:
        return UNKNOWN, max(unknown, 1 - leading if leading < WEAK else 0.0)
    return "", leading

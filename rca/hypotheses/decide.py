"""From probabilities to the kind of answer: the leading cause, `unknown` or `none`."""

from __future__ import annotations

from rca.hypotheses.score import NONE, UNKNOWN, Ranking

WEAK = 0.3
"""A leading cause below this probability is not named: the verdict is `unknown`."""


def answer(ranking: Ranking) -> tuple[str, float]:
    """Return the id that the rules alone answer with, and its probability."""
    healthy = sum(item.probability for item in ranking.candidates if item.cause.id == NONE)
    best = next((item for item in ranking.candidates if item.cause.id != NONE), None)
    leading = 0.0 if best is None else best.probability
    chosen, probability = decide(leading=leading, unknown=ranking.unknown, healthy=healthy)
    return (best.cause.id if best is not None and not chosen else chosen), probability


def decide(*, leading: float, unknown: float, healthy: float) -> tuple[str, float]:
    """Return `none`, `unknown`, or the empty string for the leading cause, with the probability of that answer."""
    if healthy > max(leading, unknown):
        return NONE, healthy
    if unknown >= leading or leading < WEAK:
        return UNKNOWN, max(unknown, 1 - leading if leading < WEAK else 0.0)
    return "", leading

"""From probabilities to the kind of answer: the leading cause, `unknown` or `none`."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rca.hypotheses.score import NONE, UNKNOWN, Ranking
from rca.rules.schema import Calibration

WEAK = 0.3
"""A leading cause below this probability is not named: the verdict is `unknown`."""


def answer(ranking: Ranking, calibration: Calibration) -> tuple[str, float]:
    """Return the id that the rules alone answer with, and its probability."""
    shares = {item.cause.id: item.probability for item in ranking.candidates} | {UNKNOWN: ranking.unknown}
    return best(shares, calibration)


def best(shares: Mapping[str, float], calibration: Calibration) -> tuple[str, float]:
    """Return the answer to probabilities by id, `unknown` and perhaps `none` among them."""
    leading = max(sorted(set(shares) - {NONE, UNKNOWN}), key=shares.__getitem__, default="")
    kind, probability = decide(
        leading=shares.get(leading, 0.0),
        unknown=shares[UNKNOWN],
        healthy=shares.get(NONE, 0.0),
        calibration=calibration,
    )
    return kind or leading, probability


def decide(*, leading: float, unknown: float, healthy: float, calibration: Calibration) -> tuple[str, float]:
    """Return `none`, `unknown`, or the empty string for the leading cause, with the probability of that answer.

    Which answer it is, is decided on the scale of the authors, without the fitted head start of `unknown`: naming the
    leading cause with its modest probability helps more than withholding it. What no cause explains is mostly due to a
    known cause that left no sign, so the answer `unknown` is stated for the share whose cause nobody listed.
    """
    authors = math.exp(-calibration.unknown / calibration.temperature)
    strength = leading / (leading + (1 - leading) * authors) if leading else 0.0
    if healthy > max(leading, unknown * authors):
        return NONE, healthy
    if unknown * authors >= leading or strength < WEAK:
        return UNKNOWN, calibration.unlisted * max(unknown, 1 - leading)
    return "", leading

"""Outcomes of experiments that were counted on runs with a known cause, and what they make of the stated chances.

The `predicts:` of an experiment file are the prior, worth one and a half outcomes; `likelihoods.yaml` holds the counts
that `rca lab matrix --write` wrote. Everything that reads the knowledge base sees the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from rca.rules.schema import ExperimentRule, Prediction

PRIOR_OUTCOMES = 1.5
"""Weight of the stated chances: half an outcome of each kind, so that few runs do not look like certainty."""
OTHER = "other"


class OutcomeCounts(BaseModel):
    """How often an experiment ended in which way, on runs with one cause."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    confirmed: Annotated[int, Field(ge=0)] = 0
    refuted: Annotated[int, Field(ge=0)] = 0
    inconclusive: Annotated[int, Field(ge=0)] = 0

    @property
    def total(self) -> int:
        """Number of runs."""
        return self.confirmed + self.refuted + self.inconclusive


Outcomes = Mapping[str, Mapping[str, OutcomeCounts]]
"""Experiment -> cause -> counts."""


class LikelihoodFile(BaseModel):
    """`likelihoods.yaml`: written by a measurement, not by hand."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: str
    """What wrote it."""
    versions: dict[str, str] = {}
    runs: int
    outcomes: dict[str, dict[str, OutcomeCounts]]


def with_outcomes(rules: Mapping[str, ExperimentRule], outcomes: Outcomes) -> dict[str, ExperimentRule]:
    """Return the experiments with the counts added to their stated chances."""
    return {name: _updated(rule, outcomes[name]) if outcomes.get(name) else rule for name, rule in rules.items()}


def _updated(rule: ExperimentRule, counts: Mapping[str, OutcomeCounts]) -> ExperimentRule:
    if not rule.predicts:
        return rule
    stated = rule.predicts
    even = Prediction(confirmed=1 / 3, refuted=1 / 3, inconclusive=1 / 3)
    rest = stated.get(OTHER, even)
    together = {cause: _posterior(stated.get(cause, rest), found) for cause, found in counts.items() if found.total}
    unlisted = [found for cause, found in counts.items() if cause not in stated]
    pooled = OutcomeCounts(
        confirmed=sum(found.confirmed for found in unlisted),
        refuted=sum(found.refuted for found in unlisted),
        inconclusive=sum(found.inconclusive for found in unlisted),
    )
    return rule.model_copy(update={"predicts": {**stated, **together, OTHER: _posterior(rest, pooled)}})


def _posterior(prior: Prediction, found: OutcomeCounts) -> Prediction:
    weight = PRIOR_OUTCOMES + found.total
    return Prediction(
        confirmed=(PRIOR_OUTCOMES * prior.confirmed + found.confirmed) / weight,
        refuted=(PRIOR_OUTCOMES * prior.refuted + found.refuted) / weight,
        inconclusive=(PRIOR_OUTCOMES * prior.inconclusive + found.inconclusive) / weight,
    )

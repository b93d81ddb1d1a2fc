"""What is believed of the causes: probabilities, and which of them an experiment confirmed or refuted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rca.diagnosis import Experiment, Hypothesis
from rca.experiments.information import OTHER, OUTCOME_OF, TEMPER, TEMPER_UNREPRODUCED, likelihood, updated
from rca.rules.schema import ExperimentRule, Outcome

RULED_OUT = 0.1
"""A cause is ruled out when its probability fell below this and to less than half."""
TELLING = 1.5
"""An outcome must be this many times as likely (or unlikely) under the cause as otherwise; less proves nothing."""
MOST_LIKELY_SHARE = 0.5
"""A cause must be at least this probable after its experiment to count as confirmed."""
SHOWN = 5
"""Leading causes that a round of the log shows."""


class Belief:
    """Probabilities of the hypotheses and of everything else (`other`), which keep their sum."""

    def __init__(self, hypotheses: Sequence[Hypothesis]) -> None:
        self.hypotheses = {item.cause: item for item in hypotheses}
        self.shares = {cause: item.probability for cause, item in self.hypotheses.items()}
        self.shares[OTHER] = max(0.0, 1 - sum(self.shares.values()))
        self.status: dict[str, str] = {}

    @property
    def leading(self) -> str:
        """The most probable hypothesis, or `other` when there is none."""
        return max(self.hypotheses, key=lambda cause: (self.shares[cause], cause), default=OTHER)

    @property
    def lead(self) -> float:
        """Share of the leading cause among the open hypotheses: no experiment can test what is not listed."""
        listed = sum(self.shares[cause] for cause in self.hypotheses if self.open(cause))
        return self.of(self.leading) / listed if listed > 0 and self.open(self.leading) else 0.0

    @property
    def leaders(self) -> tuple[tuple[str, float], ...]:
        """The first causes with their probabilities."""
        known = sorted(self.hypotheses, key=lambda cause: (-self.shares[cause], cause))
        return tuple((cause, round(self.shares[cause], 4)) for cause in known[:SHOWN])

    def of(self, cause: str) -> float:
        """Return the probability of a cause; 0 for one that is no hypothesis."""
        return self.shares.get(cause, 0.0)

    def open(self, cause: str) -> bool:
        """Whether a cause is a hypothesis that nothing else explains."""
        return cause in self.hypotheses and self.hypotheses[cause].status != "explained"

    def learn(self, rule: ExperimentRule, experiment: Experiment) -> tuple[str, ...]:
        """Take in an outcome (Bayes) and return the causes that it ruled out."""
        before = dict(self.shares)
        outcome = OUTCOME_OF.get(experiment.verdict)
        if outcome is not None and rule.predicts:
            temper = TEMPER_UNREPRODUCED if experiment.verdict == "not_reproduced" else TEMPER
            self.shares = updated(self.shares, rule, outcome, temper=temper)
        self._settle(rule, experiment, before)
        return tuple(
            cause
            for cause in self.hypotheses
            if self.shares[cause] < RULED_OUT <= before[cause] and self.shares[cause] < before[cause] / 2
        )

    def _settle(self, rule: ExperimentRule, experiment: Experiment, before: Mapping[str, float]) -> None:
        """Only an experiment confirms: the cause it tests, when its outcome speaks for it and it leads afterwards."""
        tested = [cause for cause in rule.confirms if cause in self.hypotheses]
        if not tested:
            return
        if experiment.verdict == "confirmed":
            best = max(tested, key=lambda cause: self.shares[cause])
            if self.shares[best] >= MOST_LIKELY_SHARE and _ratio(rule, best, before, "confirmed") >= TELLING:
                self.status[best] = "confirmed"
        elif experiment.verdict == "refuted":
            for cause in tested:
                against = _ratio(rule, cause, before, "refuted") <= 1 / TELLING
                if against and self.status.get(cause) != "confirmed":
                    self.status[cause] = "refuted"

    def final(self) -> tuple[Hypothesis, ...]:
        """Return the hypotheses by probability now; equal ones stay in the order in which they came."""
        ordered = sorted(self.hypotheses.values(), key=lambda item: -self.shares[item.cause])
        return tuple(self._now(item) for item in ordered)

    def _now(self, item: Hypothesis) -> Hypothesis:
        update: dict[str, object] = {"probability": min(1.0, max(0.0, self.shares[item.cause]))}
        status = self.status.get(item.cause)
        if status == "confirmed" and self.shares[item.cause] < MOST_LIKELY_SHARE:
            return item.model_copy(
                update=update
            )  # overtaken since: two causes that exclude each other cannot both be it
        if status is not None and item.status != "explained":
            update["status"] = status
        return item.model_copy(update=update)


def separates(rule: ExperimentRule, one: str, other: str) -> bool:
    """Whether some outcome of an experiment is much likelier under one of two causes than under the other."""
    outcomes: tuple[Outcome, ...] = ("confirmed", "refuted", "inconclusive")
    odds = [likelihood(rule, one, outcome) / likelihood(rule, other, outcome) for outcome in outcomes]
    return max(odds) >= TELLING or min(odds) <= 1 / TELLING


def _ratio(rule: ExperimentRule, cause: str, before: Mapping[str, float], outcome: Outcome) -> float:
    """How many times as likely an outcome is under a cause as under what else was believed."""
    rest = {other: belief for other, belief in before.items() if other != cause and other not in rule.confirms}
    mass = sum(rest.values())
    if mass <= 0:
        return likelihood(rule, cause, outcome) / likelihood(rule, OTHER, outcome)
    otherwise = sum(belief * likelihood(rule, other, outcome) for other, belief in rest.items()) / mass
    return likelihood(rule, cause, outcome) / otherwise

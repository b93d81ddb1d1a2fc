"""Answers to probabilities: evidence groups, chronology, symptoms explained away, and the outcomes unknown and none.

Log-odds of a cause = log prior + met evidence - met contradictions. Rows of one group count once, with the largest
weight. A credible cause takes from others what it explains, unless their sign stood there first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rca.hypotheses.match import Answer, View, ask
from rca.rules.schema import Calibration, Cause, EvidenceRule, Signature

UNKNOWN, NONE = "unknown", "none"

UNKNOWN_PRIOR = 0.01
UNKNOWN_BASELINE = 2.6
"""Nats by which a cause of ordinary prior must be supported to beat "unknown": one decisive sign, or two or three
supporting ones. A quarter of real incidents has a cause nobody listed (RCACopilot, EuroSys'24)."""
FIRST_FAILURE_BONUS = 1.0
"""Nats for a cause that accounts for the first initiating failure itself."""
AFTER_FAILURE_FACTOR = 0.3
"""Share of its weight that a cascade or teardown message keeps when it was said after the first failure."""
ORDINARY_FACTOR = 0.1
"""Share of its weight for a cause that a message keeps when a healthy run of the same job says it as often. A weight is
the log of how much likelier the sign is with the cause than without; what is said without it tells next to nothing. It
still contradicts what it contradicts, and still shows that a run is healthy."""
EXPERIMENTAL_DISCOUNT = 0.7
"""Nats taken from a cause of maturity `experimental`: it needs twice the odds of the others."""
EXPLAINED_PENALTY = 3.0
"""Nats taken from a cause that a credible cause explains."""
CREDIBLE_MARGIN = 0.7
"""Nats above "unknown" from which a cause may explain others."""


@dataclass(frozen=True)
class Found:
    """One evidence rule and its answer."""

    rule: EvidenceRule
    answer: Answer
    weight: float
    """Signed nats that entered the score: 0 when it had no data, was not met, or its group was counted already."""


@dataclass(frozen=True)
class Candidate:
    """A cause with its answers, its log-odds and its probability."""

    cause: Cause
    found: tuple[Found, ...]
    score: float
    probability: float = 0.0
    explained_by: str | None = None

    @property
    def supported(self) -> bool:
        """Whether anything at all speaks for it."""
        return any(item.weight > 0 for item in self.found)

    @property
    def first_event(self) -> int | None:
        """Earliest event among what speaks for it."""
        events = [event for item in self.found if item.weight > 0 for event in item.answer.events]
        return min(events, default=None)


@dataclass(frozen=True)
class Ranking:
    """All candidates by falling probability, and what is left for `unknown`."""

    candidates: tuple[Candidate, ...]
    unknown: float
    """Probability that none of the known causes is at work although something failed."""
    unknown_score: float = 0.0
    """Log-odds of `unknown`, as comparable to those of the candidates."""


def rank(
    causes: Iterable[Cause],
    view: View,
    *,
    signatures: Mapping[str, Signature] | None = None,
    calibration: Calibration | None = None,
) -> Ranking:
    """Put every condition of every cause to the run and order the causes by probability."""
    scorer = _Scorer(view, signatures or {})
    candidates = [candidate for cause in causes if (candidate := scorer.candidate(cause)) is not None]
    unknown = math.log(UNKNOWN_PRIOR) + UNKNOWN_BASELINE
    candidates = _explain(candidates, scorer, threshold=unknown + CREDIBLE_MARGIN)
    return _normalise(candidates, unknown, calibration or Calibration())


@dataclass(frozen=True)
class _Scorer:
    view: View
    signatures: Mapping[str, Signature]

    @cached_property
    def first_failure(self) -> int | None:
        """The event that failed first."""
        fact = self.view.facts.get("failure.event")
        return fact.events[0] if fact is not None and fact.events else None

    @cached_property
    def same_line(self) -> frozenset[int]:
        """The first failure and what else was read off its line: an exception and its message are one failure."""
        if self.first_failure is None:
            return frozenset()
        first = self.view.events.get(self.first_failure)
        beside = {
            event.event_id
            for event in self.view.events.events
            if first.line is not None and (event.source, event.line) == (first.source, first.line)
        }
        return frozenset(beside | {self.first_failure})

    def candidate(self, cause: Cause) -> Candidate | None:
        """Return the scored cause, or None when something it requires is not there."""
        answers = [(rule, ask(rule, self.view)) for rule in cause.evidence]
        if any(rule.required and answer.outcome != "met" for rule, answer in answers):
            return None
        against = [(rule, ask(rule, self.view)) for rule in cause.contradicts]
        return self.scored(cause, answers, against, frozenset())

    def scored(
        self,
        cause: Cause,
        answers: Sequence[tuple[EvidenceRule, Answer]],
        against: Sequence[tuple[EvidenceRule, Answer]],
        taken: frozenset[str],
    ) -> Candidate:
        """Return the cause with the weights that remain when the signatures in `taken` are explained otherwise."""
        found = [
            *self._weighted(answers, +1, taken, ordinary=ORDINARY_FACTOR if cause.id != NONE else 1.0),
            *self._weighted(against, -1, frozenset(), ordinary=1.0),
        ]
        score = math.log(cause.prior) + sum(item.weight for item in found)
        if any(item.weight > 0 and self.same_line.intersection(item.answer.events) for item in found):
            score += FIRST_FAILURE_BONUS
        if cause.maturity == "experimental":
            score -= EXPERIMENTAL_DISCOUNT
        return Candidate(cause=cause, found=tuple(found), score=score)

    def _weighted(
        self, answers: Sequence[tuple[EvidenceRule, Answer]], sign: int, taken: frozenset[str], *, ordinary: float
    ) -> list[Found]:
        """`ordinary` is the share that is left of the weight of what a healthy run says as well."""
        weights = [
            self._weight(rule, answer, taken) * (ordinary if self._ordinary(rule, answer) else 1.0)
            if answer.outcome == "met"
            else 0.0
            for rule, answer in answers
        ]
        best: dict[str, int] = {}
        for index, (rule, _) in enumerate(answers):
            key = rule.group or rule.id
            if key not in best or weights[index] > weights[best[key]]:
                best[key] = index
        counted = set(best.values())
        return [
            Found(rule=rule, answer=answer, weight=sign * weights[index] if index in counted else 0.0)
            for index, (rule, answer) in enumerate(answers)
        ]

    def _ordinary(self, rule: EvidenceRule, answer: Answer) -> bool:
        """Whether the sign is a message that the healthy run says too, with captures that meet the same condition."""
        healthy = self.view.healthy
        if healthy is None or not answer.signatures or not self.view.ordinary.issuperset(answer.events):
            return False
        return ask(rule, healthy).outcome == "met"

    def _weight(self, rule: EvidenceRule, answer: Answer, taken: frozenset[str]) -> float:
        if answer.signatures and answer.signatures <= taken:
            return 0.0
        first = self.first_failure
        late = first is not None and bool(answer.events) and min(answer.events) > max(self.same_line)
        follows = answer.signatures and all(
            (known := self.signatures.get(name)) is not None and known.role in {"cascade", "teardown"}
            for name in answer.signatures
        )
        return rule.weight * (AFTER_FAILURE_FACTOR if late and follows else 1.0)


def _explain(candidates: Sequence[Candidate], scorer: _Scorer, *, threshold: float) -> list[Candidate]:
    """Let credible causes take from the others what is only their symptom."""
    current = sorted(candidates, key=lambda item: (-item.score, item.cause.id))
    settled: dict[str, Candidate] = {item.cause.id: item for item in current}
    for strong in current:
        cause = settled[strong.cause.id]
        if cause.score < threshold or cause.explained_by is not None or cause.cause.id == NONE:
            continue
        for name, other in settled.items():
            if name == cause.cause.id or other.explained_by is not None:
                continue
            settled[name] = _demoted(other, cause, scorer)
    # What leads its explanation even so is no symptom of it.
    return [
        replace(item, explained_by=None)
        if item.explained_by is not None and item.score > settled[item.explained_by].score
        else item
        for item in settled.values()
    ]


def _demoted(other: Candidate, by: Candidate, scorer: _Scorer) -> Candidate:
    """Return `other` without what `by` explains; the sign that stood there first is never explained away."""
    mutual = _covers(other.cause.explains, by.cause.id)
    if mutual and (other.score, by.cause.id) > (by.score, other.cause.id):
        return other
    if _covers(by.cause.explains, other.cause.id):
        earlier = (
            other.first_event is not None
            and by.first_event is not None
            and other.first_event < by.first_event
            and other.first_event == scorer.first_failure
        )
        if not earlier:
            return replace(other, score=other.score - EXPLAINED_PENALTY, explained_by=by.cause.id)
    names = {name for item in other.found for name in item.answer.signatures}
    taken = frozenset(name for name in names if _covers(by.cause.explains, name))
    if not taken:
        return other
    answers = [(item.rule, item.answer) for item in other.found]
    count = len(other.cause.evidence)
    rescored = scorer.scored(other.cause, answers[:count], answers[count:], taken)
    return replace(rescored, explained_by=by.cause.id if not rescored.supported else None)


def _covers(explains: Sequence[str], name: str) -> bool:
    return any(name == item or (item.endswith("*") and name.startswith(item[:-1])) for item in explains)


def probabilities(scores: Mapping[str, float], calibration: Calibration) -> dict[str, float]:
    """Return log-odds by id, `unknown` among them, as probabilities that add up to one."""
    unknown = {UNKNOWN: scores[UNKNOWN] + calibration.unknown}
    scaled = {name: score / calibration.temperature for name, score in {**scores, **unknown}.items()}
    top = max(scaled.values())
    total = sum(math.exp(score - top) for score in scaled.values())
    return {name: math.exp(score - top) / total for name, score in scaled.items()}


def _normalise(candidates: Sequence[Candidate], unknown: float, calibration: Calibration) -> Ranking:
    named = [item for item in candidates if item.supported]
    shares = probabilities({item.cause.id: item.score for item in named} | {UNKNOWN: unknown}, calibration)
    ranked = [replace(item, probability=shares[item.cause.id]) for item in named]
    ranked.sort(key=lambda item: (-item.probability, item.cause.id))
    return Ranking(candidates=tuple(ranked), unknown=shares[UNKNOWN], unknown_score=unknown)

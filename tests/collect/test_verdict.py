"""The answer, its words, and what it asks for when it does not know."""

from __future__ import annotations

import pytest

from rca.collect.verdict import environment_findings, in_words, missing, verdict
from rca.diagnosis import Evidence, Hypothesis
from rca.rules.schema import Calibration, Cause

HEALTHY = Cause(id="none", title="Nothing wrong", sentence="The run finished.", summary="-", prior=0.1)


def hypothesis(cause: str, probability: float, **more) -> Hypothesis:
    return Hypothesis(cause=cause, title=cause, probability=probability, domain=cause.split(".", maxsplit=1)[0], **more)


def answer(*hypotheses: Hypothesis, unknown: float = 0.1, healthy: float = 0.0):
    return verdict(hypotheses, unknown=unknown, healthy=healthy, healthy_cause=HEALTHY, failure=None,
                   calibration=Calibration(unlisted=0.5))  # fmt: skip


def test_the_most_probable_cause_is_the_answer() -> None:
    chosen = answer(hypothesis("a.x", 0.2), hypothesis("a.y", 0.7, decide=("look",)))
    assert (chosen.cause, chosen.status, chosen.next_step) == ("a.y", "suspected", "look")


def test_only_an_experiment_confirms() -> None:
    chosen = answer(hypothesis("a.y", 0.7, status="confirmed", decide=("look",)))
    assert (chosen.status, chosen.next_step) == ("confirmed", "")


def test_a_weak_leader_and_a_stronger_unknown_both_give_unknown() -> None:
    assert answer(hypothesis("a.x", 0.29), hypothesis("a.y", 0.28)).cause == "unknown"
    assert answer(hypothesis("a.x", 0.4), unknown=0.5).cause == "unknown"
    assert answer(unknown=1.0).cause == "unknown"


def test_a_healthy_run_is_none() -> None:
    chosen = answer(hypothesis("a.x", 0.2), unknown=0.2, healthy=0.6)
    assert (chosen.cause, chosen.status, chosen.probability) == ("none", "none", 0.6)


@pytest.mark.parametrize(
    ("probability", "words"),
    [(0.99, "almost certain"), (0.9, "very likely"), (0.5, "more likely than not"), (0.1, "possible")],
)
def test_words(probability, words) -> None:
    assert in_words(probability) == words


def test_what_is_missing_is_asked_for_until_an_experiment_decided() -> None:
    rows = [hypothesis("a.x", 0.5, decide=("one", "two")), hypothesis("a.y", 0.3, decide=("two", "three"))]
    assert missing(rows, answer(*rows)) == ("one", "two", "three")
    far = [hypothesis("a.x", 0.9, decide=("one",)), hypothesis("a.y", 0.01, decide=("two",))]
    assert missing(far, answer(*far)) == ("one",)
    confirmed = [hypothesis("a.x", 0.9, status="confirmed", decide=("one",))]
    assert missing(confirmed, answer(*confirmed)) == ()


def test_the_environment_is_reported_even_when_it_is_not_the_cause() -> None:
    says = Evidence(id="e", says="The driver is from 2019.", weight=1.0)
    rows = [hypothesis("numerics.x", 0.8), hypothesis("environment.driver", 0.1, evidence_for=(says,))]
    assert environment_findings(rows, answer(*rows)) == ("environment.driver: The driver is from 2019.",)

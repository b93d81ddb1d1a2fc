"""The agent on recorded outcomes, in its own order and in others."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rca.agent import replay
from rca.diagnosis import ExperimentVerdict
from rca.experiments.interface import RunProfile
from tests.agent.test_loop import hypotheses, rule

RULES = {
    item.id: item
    for item in (
        rule("e_a", "x.a", cost=30),
        rule("e_b", "x.b", cost=5),
        rule("e_c", "x.c", cost=5),
        rule("e_d", "x.d", cost=5),
    )
}
RECORDED: Mapping[str, tuple[ExperimentVerdict, float]] = {
    "e_a": ("refuted", 40.0),
    "e_b": ("refuted", 6.0),
    "e_c": ("confirmed", 7.0),
    "e_d": ("refuted", 5.0),
}


def test_the_agent_reaches_the_same_verdict_as_a_checklist_in_less_time() -> None:
    found = hypotheses(a=0.2, b=0.2, c=0.4, d=0.1)
    agent = replay(found, RULES, RECORDED)
    checklist = replay(found, RULES, RECORDED, order="ids")
    for result in (agent, checklist):
        assert (result.hypotheses[0].cause, result.hypotheses[0].status) == ("x.c", "confirmed")
    assert agent.seconds < 0.6 * checklist.seconds
    assert [item.id for item in checklist.experiments][:3] == ["e_a", "e_b", "e_c"]


def test_the_most_probable_cause_first() -> None:
    result = replay(hypotheses(a=0.2, b=0.4, c=0.3), RULES, RECORDED, order="prior")
    assert [item.id for item in result.experiments][:2] == ["e_b", "e_c"]


def test_seconds_are_the_sum_of_what_was_recorded_and_nothing_depends_on_the_clock() -> None:
    found = hypotheses(a=0.3, b=0.3, c=0.3)
    once, again = (replay(found, RULES, RECORDED) for _ in range(2))
    assert once == again
    assert once.seconds == sum(RECORDED[item.id][1] for item in once.experiments)


def test_only_recorded_experiments_are_available_and_a_budget_holds() -> None:
    found = hypotheses(a=0.3, b=0.3, c=0.3)
    few = replay(found, RULES, {name: RECORDED[name] for name in ("e_b", "e_d")})
    assert {item.id for item in few.experiments} <= {"e_b", "e_d"}
    assert replay(found, RULES, RECORDED, budget_s=10).seconds <= 10


@pytest.mark.parametrize("order", ["information", "ids", "prior"])
def test_with_a_profile_only_what_can_speak_is_chosen(order: str) -> None:
    rules = {**RULES, "e_b": rule("e_b", "x.b", symptoms=("stuck",))}
    found = hypotheses(a=0.3, b=0.3, c=0.3)
    result = replay(found, rules, RECORDED, order=order, profile=RunProfile(symptoms=("nan_abrupt",)))
    assert "e_b" not in {item.id for item in result.experiments}
    assert result.experiments

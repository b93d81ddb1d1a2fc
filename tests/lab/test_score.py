"""What an evaluation amounts to, from rows that are written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from rca.diagnosis import Hypothesis
from rca.lab.score import compare_orders, markdown, score
from rca.rules.schema import ExperimentRule


def row(fault: str, cause: str, **changes: Any) -> dict[str, Any]:
    usual = {
        "run": fault, "fault": fault, "cause": cause, "accepted": [cause], "seconds": 10.0, "before": cause,
        "first_before": cause, "first_after": cause, "after": cause, "confirmed": [], "refuted": [], "experiments": [],
    }  # fmt: skip
    return {**usual, **changes}


LR, BATCH = "numerics.lr_too_high", "numerics.bad_batch"
TESTED = [{"id": "lr_tenth", "verdict": "confirmed", "tests": [LR], "seconds": 4.0}]


def test_shares_are_counted_over_what_they_are_about() -> None:
    found = score([
        row("a", LR, confirmed=[LR], refuted=[BATCH], experiments=TESTED, first_before=BATCH, before="unknown"),
        row("b", BATCH, confirmed=[LR], experiments=TESTED, first_after=LR, seconds=30.0),
        row("c", "none"),
        {"run": "d", "fault": "d", "cause": LR, "accepted": [LR], "error": "nothing readable"},
    ])  # fmt: skip
    assert (found.runs, found.faults) == (4, 4)
    assert (found.first_before.count, found.first_after.count, found.first_after.of) == (2, 2, 4)
    assert (found.verdicts_right.count, found.verdicts_right.of) == (2, 3)
    assert (found.false_confirmations.count, found.false_confirmations.of) == (1, 2)
    assert (found.healthy_confirmed.count, found.healthy_confirmed.of) == (0, 1)
    assert (found.experiments_right.count, found.experiments_right.of) == (1, 2)
    assert found.median_with_experiments_s == 20.0
    page = markdown(found, command="rca lab evaluate", remarks=["two at once"])
    assert "| a | numerics.lr_too_high | 1 | 0 | 1 | 1 | 0 | 0 | 10.0 |  |" in page
    assert "numerics.lr_too_high (1)" in page
    assert "not recorded" in page


def rule(name: str, cause: str, cost: float) -> ExperimentRule:
    return ExperimentRule.model_validate({
        "id": name, "title": name, "question": "?", "change": {"lr": "x0.1"}, "confirms": [cause], "says": "-",
        "cost": cost, "predicts": {cause: {"confirmed": 0.9, "refuted": 0.05, "inconclusive": 0.05},
                                   "other": {"confirmed": 0.02, "refuted": 0.9, "inconclusive": 0.08}},
    })  # fmt: skip


def test_the_order_of_the_agent_is_compared_with_a_checklist() -> None:
    rules = {item.id: item for item in (rule("a_slow", BATCH, 8), rule("b_quick", LR, 4))}
    candidates = [
        Hypothesis(cause=LR, title="", probability=0.6, status="suspected", experiments=("b_quick",)),
        Hypothesis(cause=BATCH, title="", probability=0.3, status="suspected", experiments=("a_slow",)),
    ]
    run = {"run": "a", "cause": LR, "also_ok": [], "profile": {"symptoms": ["diverged"]},
           "hypotheses": [item.model_dump(mode="json") for item in candidates]}  # fmt: skip
    outcomes = [{"run": "a", "experiment": "a_slow", "verdict": "refuted", "seconds": 8.0},
                {"run": "a", "experiment": "b_quick", "verdict": "confirmed", "seconds": 4.0}]  # fmt: skip
    found = compare_orders([run, *outcomes], rules)
    assert found.runs == 1
    assert found.seconds["information"] == pytest.approx(4.0)
    assert found.seconds["ids"] == pytest.approx(12.0)
    assert found.experiments["ids"] == 2

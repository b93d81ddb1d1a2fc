from __future__ import annotations

from rca.diagnosis import Evidence, Fix
from rca.report.findings import expectations, found, risk, told_once

from .samples import lr_too_high


def test_a_finding_is_told_once() -> None:
    finding = "rank 3 did not join the collective in which seven other ranks wait."
    says = ("They name who stayed away: ", "They time out apart: ", "", "Another thing: ")
    rows = [Evidence(id=str(n), says=f"{text}{finding}", weight=4 - n) for n, text in enumerate(says[:3])]
    rows.append(Evidence(id="3", says="Another thing: short.", weight=5))
    shown = told_once(rows)
    assert [item.id for item in shown] == ["3", "0", "1"]
    assert shown[1].says == f"They name who stayed away: {finding}"
    assert shown[2].says == "They time out apart."


def test_expectations_are_those_of_the_round_that_chose_the_experiment() -> None:
    sample = lr_too_high()
    first = sample.log[0].model_copy(
        update={"chosen": "lr_tenth", "expected": (("a", 0.9, 0.0, 0.1), ("other", 0, 0, 1))}
    )
    sample = sample.model_copy(update={"log": (first, *sample.log[1:])})
    assert expectations(sample, "lr_tenth") == (("a", 0.9, 0.0, 0.1), ("another cause", 0, 0, 1))
    assert expectations(sample, "no such experiment") == ()


def test_the_verdict_of_a_round_is_told_in_words() -> None:
    assert found("not_testable: The step: it was too long.") == "not testable here: The step: it was too long."
    assert found("Nothing was left") == "Nothing was left"


def test_a_risk_that_is_none_is_not_told() -> None:
    told = [risk(Fix(action="a", risk=text)) for text in ("None.", "none", "Slower.", "")]
    assert told == ["", "", "Slower.", ""]

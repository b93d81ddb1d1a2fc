"""The score over labelled incidents."""

from __future__ import annotations

import pytest

from rca.evaluate import CaseOutcome, score
from rca.scoreboard import row, summary


def outcome(truth: str, *ranked: str, probability: float = 0.9, also: tuple[str, ...] = ()) -> CaseOutcome:
    return CaseOutcome(
        case="case",
        truth=truth,
        accepted=(truth, *also),
        verdict=ranked[0],
        probability=probability,
        ranked=ranked,
        seconds=0.1,
    )


OUTCOMES = [
    outcome("a.x", "a.x"),
    outcome("a.x", "a.y", "a.x", probability=0.5),
    outcome("b.z", "unknown", "a.x", "a.y", "b.z", probability=0.6),
    outcome("b.z", "b.w", also=("b.w",)),
    outcome("none", "a.x", "none", probability=0.4),
]


def test_totals() -> None:
    result = score(OUTCOMES)
    assert result.top1 == pytest.approx(2 / 5)
    assert result.top3 == pytest.approx(4 / 5)
    assert (result.healthy, result.false_alarms, result.abstained) == (1, 1, 1)
    assert {(item.domain, item.cases, item.top1) for item in result.domains} == {
        ("a", 2, 1),
        ("b", 2, 1),
        ("none", 1, 0),
    }
    assert ("a.x", "a.y", 1) in result.confusion


def test_calibration_error_weighs_the_distance_between_stated_and_observed() -> None:
    perfect = [outcome("a.x", "a.x", probability=1.0)] * 4
    boastful = [outcome("a.x", "a.y", probability=1.0)] * 4
    assert score(perfect).calibration_error == pytest.approx(0)
    assert score(boastful).calibration_error == pytest.approx(1)


def test_the_table_names_every_wrong_verdict() -> None:
    text = summary(score(OUTCOMES))
    assert "a.x -> a.y" in text
    assert row(OUTCOMES[0]).startswith("ok")
    assert row(OUTCOMES[1]).startswith("top3")
    assert "(truth b.z)" in row(OUTCOMES[2])

"""What a healthy run says as well weighs next to nothing."""

from __future__ import annotations

import pytest

from rca.events import EventBuilder, EventTable
from rca.hypotheses.match import View
from rca.hypotheses.score import ORDINARY_FACTOR, Candidate, rank
from rca.rules.schema import Cause


def run(names: list[str], value: int) -> EventTable:
    builder = EventBuilder("a.log")
    for number, signature in enumerate(names, start=1):
        builder.add(kind="log", name=signature, line=number, attrs={"value": value})
    return EventTable.from_parts([builder.build()])


def scored(rule: dict, names: list[str], ordinary: set[int], *, name: str = "a.b", there: int = 1, **more) -> Candidate:
    """The score of a cause when the healthy run says the same with the capture `there` (here it is 1)."""
    healthy = View(run(names, there), {})
    view = View(run(names, 1), {}, healthy=healthy, ordinary=frozenset(ordinary))
    texts = {"title": name, "sentence": name, "summary": name, "prior": 0.01}
    rules = {"evidence": [{"id": "e", "says": "seen", **rule}], **more}
    return rank([Cause.model_validate({"id": name, **texts, **rules})], view).candidates[0]


def test_a_message_of_both_runs_keeps_a_small_share_of_its_weight() -> None:
    rule = {"signature": "x.y", "weight": 4}
    before, after = scored(rule, ["x.y"], set()), scored(rule, ["x.y"], {0})
    assert before.score - after.score == pytest.approx(4 * (1 - ORDINARY_FACTOR))
    assert after.found[0].weight == pytest.approx(4 * ORDINARY_FACTOR)


def test_a_message_with_another_value_keeps_its_weight() -> None:
    rule = {"signature": "x.y", "where": {"value": "<= 1"}, "weight": 4}
    before = scored(rule, ["x.y"], set()).score
    assert scored(rule, ["x.y"], {0}, there=9).score == before
    assert scored(rule, ["x.y"], {0}, there=0).score < before


def test_it_keeps_its_weight_when_some_of_it_is_new() -> None:
    rule = {"signature": "x.y", "weight": 4}
    assert scored(rule, ["x.y", "x.y"], {0}).score == scored(rule, ["x.y", "x.y"], set()).score


def test_what_is_required_is_still_met() -> None:
    assert scored({"signature": "x.y", "weight": 4, "required": True}, ["x.y"], {0}).supported


def test_it_still_contradicts_and_still_shows_a_healthy_run() -> None:
    against = [{"id": "no", "signature": "x.z", "weight": 2, "says": "no"}]
    rule = {"signature": "x.y", "weight": 4}
    some, none = ({1}, set())
    assert scored(rule, ["x.y", "x.z"], some, contradicts=against).score == pytest.approx(
        scored(rule, ["x.y", "x.z"], none, contradicts=against).score
    )
    assert scored(rule, ["x.y"], {0}, name="none").score == scored(rule, ["x.y"], set(), name="none").score

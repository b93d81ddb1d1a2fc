"""Which questions of a cause are left open."""

from __future__ import annotations

from rca.collect.evidence import hypotheses
from rca.events import EventBuilder, EventTable
from rca.facts.interface import Fact
from rca.hypotheses.match import View
from rca.hypotheses.score import rank
from rca.rules.schema import Cause

BESIDE = {"fact": "baseline.lr_ratio", "op": ">=", "value": 2}
MIXED = {"any": [{"fact": "lr.low", "value": True}, BESIDE]}


def asked(rule: dict, **values: object) -> list[str]:
    builder = EventBuilder("train.log")
    builder.add(kind="log", name="x.y", line=1)
    events = EventTable.from_parts([builder.build()])
    rows = [
        {"id": "a", "says": "seen", "weight": 3, "signature": "x.y"},
        {"id": "b", "says": "asked", "weight": 2, **rule},
    ]
    texts = {"id": "a.b", "title": "t", "sentence": "s", "summary": "s", "prior": 0.1}
    facts = {name.replace("__", "."): Fact(name.replace("__", "."), value) for name, value in values.items()}
    ranking = rank([Cause.model_validate({**texts, "evidence": rows})], View(events=events, facts=facts))
    (found,) = hypotheses(ranking.candidates, events, facts, context=lambda _places: {}, meanings={})
    return [item.decides for item in found.no_data]


def test_a_comparison_that_nobody_asked_for_is_no_open_question() -> None:
    assert asked(BESIDE) == []
    assert asked(BESIDE, baseline__config_changes=0) == ["baseline.lr_ratio (a computed value)"]


def test_a_question_that_could_be_answered_otherwise_stays_open_without_it() -> None:
    assert asked(MIXED) == ["lr.low (a computed value)"]
    assert asked(MIXED, lr__low=False) == []


def test_what_was_answered_is_not_asked() -> None:
    assert asked({"fact": "lr.low", "value": True}, lr__low=True) == []
    assert asked({"config": "batch_size", "op": ">=", "value": 2}) == ["the setting batch_size"]

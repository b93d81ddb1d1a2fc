"""Scores: groups, required evidence, chronology, symptoms, unknown."""

from __future__ import annotations

import pytest

from rca.events import EventBuilder, EventTable
from rca.facts.interface import Fact
from rca.hypotheses.match import View
from rca.hypotheses.score import Ranking, rank
from rca.rules.schema import Cause, Signature


def cause(name: str, *evidence: dict, prior: float = 0.01, **more) -> Cause:
    rows = [{"id": f"e{number}", "says": "seen", **row} for number, row in enumerate(evidence)]
    return Cause.model_validate(
        {"id": name, "title": name, "sentence": name, "summary": name, "prior": prior, "evidence": rows, **more}
    )


def signature(name: str, role: str) -> Signature:
    return Signature(id=name, emitter="test", pattern="x", role=role, matches=("x",))


def ranked(causes: list[Cause], lines: list[tuple[str, int]], *, first: int | None = None) -> Ranking:
    builder = EventBuilder("a.log")
    for number, (name, owner) in enumerate(lines, start=1):
        builder.add(kind="log", name=name, line=number, rank=owner)
    facts = {} if first is None else {"failure.event": Fact("failure.event", "x", events=(first,))}
    roles = {"net.lost": "cascade", "job.term": "teardown"}
    known = {name: signature(name, roles.get(name, "initiating")) for name, _ in lines}
    return rank(causes, View(EventTable.from_parts([builder.build()]), facts), signatures=known)


def test_one_decisive_sign_beats_unknown_and_a_weak_one_does_not() -> None:
    strong = ranked([cause("a.b", {"signature": "x.y", "weight": 5})], [("x.y", 0)])
    weak = ranked([cause("a.b", {"signature": "x.y", "weight": 1})], [("x.y", 0)])
    assert strong.candidates[0].probability > 0.8
    assert weak.candidates[0].probability < weak.unknown


def test_probabilities_and_unknown_sum_to_one() -> None:
    rules = [cause("a.b", {"signature": "x.y", "weight": 3}), cause("a.c", {"signature": "x.y", "weight": 2})]
    result = ranked(rules, [("x.y", 0)])
    assert sum(item.probability for item in result.candidates) + result.unknown == pytest.approx(1)


def test_the_same_message_from_64_ranks_counts_once() -> None:
    rules = [cause("a.b", {"signature": "x.y", "weight": 3})]
    one = ranked(rules, [("x.y", 0)])
    many = ranked(rules, [("x.y", rank_number) for rank_number in range(64)])
    assert one.candidates[0].score == many.candidates[0].score


def test_evidence_of_one_group_counts_once_with_its_largest_weight() -> None:
    rows = [{"signature": "x.y", "weight": 2, "group": "g"}, {"signature": "x.z", "weight": 3, "group": "g"}]
    grouped = ranked([cause("a.b", *rows)], [("x.y", 0), ("x.z", 0)])
    single = ranked([cause("a.b", {"signature": "x.z", "weight": 3})], [("x.z", 0)])
    assert grouped.candidates[0].score == pytest.approx(single.candidates[0].score)


def test_a_cause_without_its_required_evidence_is_not_considered() -> None:
    rows = [{"signature": "x.absent", "weight": 3, "required": True}, {"signature": "x.y", "weight": 5}]
    assert ranked([cause("a.b", *rows)], [("x.y", 0)]).candidates == ()


def test_contradictions_lower_the_score() -> None:
    against = [{"id": "c", "signature": "x.z", "weight": 4, "says": "against"}]
    rules = [cause("a.b", {"signature": "x.y", "weight": 5}, contradicts=against)]
    alone = ranked(rules, [("x.y", 0)])
    contradicted = ranked(rules, [("x.y", 0), ("x.z", 0)])
    assert contradicted.candidates[0].score == pytest.approx(alone.candidates[0].score - 4)


def test_a_credible_cause_turns_what_it_explains_into_a_symptom() -> None:
    root = cause("a.root", {"signature": "x.crash", "weight": 5}, explains=["b.symptom", "net.*"])
    symptom = cause("b.symptom", {"signature": "net.lost", "weight": 6})
    result = ranked([root, symptom], [("x.crash", 2), ("net.lost", 0), ("net.lost", 1)], first=0)
    assert result.candidates[0].cause.id == "a.root"
    explained = next((item for item in result.candidates if item.cause.id == "b.symptom"), None)
    assert explained is None or explained.explained_by == "a.root"


def test_what_leads_its_explanation_even_so_is_no_symptom() -> None:
    root = cause("a.root", {"signature": "x.crash", "weight": 3}, explains=["b.symptom"])
    symptom = cause("b.symptom", {"signature": "x.y", "weight": 10})
    result = ranked([root, symptom], [("x.crash", 0), ("x.y", 2)], first=0)
    assert [item.cause.id for item in result.candidates[:2]] == ["b.symptom", "a.root"]
    assert result.candidates[0].explained_by is None


def test_a_sign_that_is_the_first_failure_is_not_explained_by_what_came_later() -> None:
    later = cause("a.later", {"signature": "x.crash", "weight": 5}, explains=["b.first"])
    first = cause("b.first", {"signature": "net.lost", "weight": 5})
    result = ranked([later, first], [("net.lost", 0), ("x.crash", 2)], first=0)
    assert result.candidates[0].cause.id == "b.first"
    assert result.candidates[0].explained_by is None


def test_cascade_messages_after_the_first_failure_weigh_less() -> None:
    rules = [cause("b.net", {"signature": "net.lost", "weight": 5})]
    alone = ranked(rules, [("net.lost", 0)])
    after = ranked(rules, [("x.crash", 1), ("net.lost", 0)], first=0)
    assert after.candidates[0].score < alone.candidates[0].score


def test_an_unsupported_cause_is_not_listed() -> None:
    assert ranked([cause("a.b", {"signature": "x.absent", "weight": 5}, prior=0.5)], [("x.y", 0)]).candidates == ()


def test_an_experimental_cause_needs_twice_the_odds() -> None:
    rule = {"id": "seen", "signature": "x.y", "weight": 4, "says": "Seen."}
    sure = ranked([cause("a.sure", rule, maturity="test"), cause("a.new", rule)], [("x.y", 0)])
    odds = {item.cause.id: item.probability for item in sure.candidates}
    assert odds["a.sure"] / odds["a.new"] == pytest.approx(2.0, rel=0.01)

"""Which questions of a cause are left open."""

from __future__ import annotations

import pytest

from rca.collect.evidence import fill, hypotheses
from rca.diagnosis import Hypothesis
from rca.events import EventBuilder, EventTable
from rca.facts.interface import Fact
from rca.hypotheses.match import View
from rca.hypotheses.score import rank
from rca.rules.schema import Cause

BESIDE = {"fact": "baseline.lr_ratio", "op": ">=", "value": 2}
MIXED = {"any": [{"fact": "lr.low", "value": True}, BESIDE]}


def asked(rule: dict, **values: object) -> list[str]:
    return [item.decides for item in found_for(rule, **values).no_data]


def found_for(
    rule: dict,
    *,
    meanings: dict[str, str] | None = None,
    fixes: tuple[dict, ...] = (),
    settings: dict[str, float] | None = None,
    again: dict | None = None,
    **values: object,
) -> Hypothesis:
    builder = EventBuilder("train.log")
    builder.add(kind="log", name="x.y", line=1)
    for name, value in (settings or {}).items():
        builder.add(kind="config", name=name, value=value, text=str(value), line=2)
    events = EventTable.from_parts([builder.build()])
    rows = [
        {"id": "a", "says": "seen", "weight": 3, "signature": "x.y"},
        {"id": "b", "says": "asked", "weight": 2, **rule},
        *([{"id": "c", "says": "asked", "weight": 1, **again}] if again else []),
    ]
    texts = {"id": "a.b", "title": "t", "sentence": "s", "summary": "s", "prior": 0.1, "fixes": fixes}
    facts = {name.replace("__", "."): Fact(name.replace("__", "."), value) for name, value in values.items()}
    ranking = rank([Cause.model_validate({**texts, "evidence": rows})], View(events=events, facts=facts))
    (found,) = hypotheses(ranking.candidates, events, facts, context=lambda _places: {}, meanings=meanings or {})
    return found


def test_a_comparison_that_nobody_asked_for_is_no_open_question() -> None:
    assert asked(BESIDE) == []
    assert asked(BESIDE, baseline__config_changes=0) == ["baseline.lr_ratio"]


def test_a_question_that_could_be_answered_otherwise_stays_open_without_it() -> None:
    assert asked(MIXED) == ["lr.low"]
    assert asked(MIXED, lr__low=False) == []


def test_what_was_answered_is_not_asked() -> None:
    assert asked({"fact": "lr.low", "value": True}, lr__low=True) == []
    assert asked({"config": "batch_size", "op": ">=", "value": 2}) == ["the setting batch_size"]


def test_an_open_question_is_a_sentence_without_names_of_facts_or_empty_places() -> None:
    rule = {"fact": "lr.jump", "op": ">=", "value": 3, "says": "It jumps by a factor of {lr.jump}."}
    meanings = {"lr.jump": "largest ratio between neighbouring rates (x)"}
    (item,) = found_for(rule, meanings=meanings).no_data
    assert (item.says, item.decides) == ("It jumps by a factor of …", "largest ratio between neighbouring rates")
    (item,) = found_for({**rule, "says": "{fact_says}"}, meanings=meanings).no_data
    assert (item.says, item.decides) == ("Largest ratio between neighbouring rates.", "")
    listed = {"lr.jump": "what it does: rises | falls | jumps"}
    assert found_for(rule, meanings=listed).no_data[0].decides == "what it does"


def test_a_snippet_holds_the_numbers_of_the_run() -> None:
    fixes = ({"action": "Lower it", "snippet": "lr=<<lr.peak or config.learning_rate / 10 | LR / 10>>"},)
    rule = {"fact": "lr.low", "value": True}
    assert found_for(rule, fixes=fixes).fixes[0].snippet == "lr=LR / 10"
    assert found_for(rule, fixes=fixes, settings={"learning_rate": 0.5}).fixes[0].snippet == "lr=0.05"
    assert found_for(rule, fixes=fixes, lr__peak=2.0).fixes[0].snippet == "lr=0.2"


def test_a_fix_that_is_meant_for_what_was_seen_comes_first() -> None:
    fixes = ({"action": "For all"}, {"action": "For another", "when": ["x"]}, {"action": "For this", "when": ["b"]})
    actions = [fix.action for fix in found_for({"fact": "lr.low", "value": True}, fixes=fixes, lr__low=True).fixes]
    assert actions == ["For this", "For all", "For another"]
    actions = [fix.action for fix in found_for({"fact": "lr.low", "value": True}, fixes=fixes).fixes]
    assert actions == ["For all", "For another", "For this"]


def test_values_stand_in_a_sentence_as_it_would_be_said() -> None:
    facts = {
        "eval.rise": Fact("eval.rise", 0.8),
        "eval.best_step": Fact("eval.best_step", 25, unit="step"),
        "gpu.clock_drop": Fact("gpu.clock_drop", 0.215),
        "memory.static_gib": Fact("memory.static_gib", 12.5, unit="GiB"),
    }
    said = fill("Up {eval.rise} from step {eval.best_step}; {gpu.clock_drop}, {memory.static_gib}, {a.b}.", {}, facts)
    assert said == "Up 80% from step 25; 21.5%, 12.5 GiB, …."


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("A tensor of {oom.tried_gib} was asked for.", "A tensor of 46.07 GiB was asked for."),
        ("It failed {failure.lead_s} s before.", "It failed 1.5 s before."),
        ("A step takes {step.median_s} so far.", "A step takes 30 s so far."),
        ("{memory.seq_outlier} times longer, by a factor of {lr.jump}.", "20 times longer, by a factor of 8."),
        ("It climbed to {loss.growth} its level.", "It climbed to 3 x its level."),
    ],
)
def test_a_value_keeps_its_unit_unless_the_sentence_says_it(template: str, said: str) -> None:
    units = {"oom.tried_gib": (46.07, "GiB"), "failure.lead_s": (1.5, "s"), "step.median_s": (30.0, "s")}
    units |= {"memory.seq_outlier": (20.0, "x"), "lr.jump": (8.0, "x"), "loss.growth": (3.0, "x")}
    facts = {name: Fact(name, value, unit=unit) for name, (value, unit) in units.items()}
    answers = {name: value for name, (value, _) in units.items()}
    assert fill(template, answers, facts) == fill(template, {}, facts) == said


def test_only_what_is_lacking_is_asked_for() -> None:
    rule = {"any": [{"fact": "lr.low", "value": True}, {"config": "seed", "value": 7}]}
    assert asked(rule, settings={"seed": 5}) == ["lr.low"]
    assert asked(rule) == ["lr.low; the setting seed"]


def test_one_question_with_two_bounds_is_asked_once() -> None:
    bounds = [{"fact": "lr.jump", "op": ">=", "value": bound} for bound in (3, 10)]
    assert asked(bounds[0], again=bounds[1]) == ["lr.jump"]

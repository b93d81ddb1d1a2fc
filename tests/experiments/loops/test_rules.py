"""Every loop experiment of the knowledge base can be carried out: its settings exist, its arms differ in one."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rca.errors import ExperimentError
from rca.experiments.interface import RunProfile
from rca.experiments.loops.config import LoopConfig, Setting, changed, loop_of
from rca.experiments.loops.judging import _LABELS
from rca.rules.load import load
from rca.rules.schema import ExperimentRule, LoopRule

LOOPS = [rule for rule in load().experiments.values() if rule.kind == "loop"]


@pytest.mark.parametrize("rule", LOOPS, ids=lambda rule: rule.id)
def test_control_and_treatment_differ_in_exactly_one_setting(rule: ExperimentRule) -> None:
    assert rule.loop is not None
    assert len(rule.change) == 1
    own = LoopConfig(loop=rule.loop.runs)
    control = changed(own, rule.reproduces)
    treatment = changed(control, rule.change)
    differing = [name for name in LoopConfig.model_fields if getattr(control, name) != getattr(treatment, name)]
    assert len(differing) <= 1
    assert bool(rule.reproduces) == bool(rule.planted)


@pytest.mark.parametrize("rule", LOOPS, ids=lambda rule: rule.id)
def test_it_is_decided_by_figures_that_exist_and_can_lose(rule: ExperimentRule) -> None:
    assert rule.loop is not None
    assert {rule.metric, *rule.loop.shows, *rule.loop.agrees} <= set(_LABELS)
    assert rule.loop.shows, "the control must show the symptom first"
    assert set(rule.loop.agrees.values()) | set(rule.loop.requires) <= set(RunProfile.model_fields)
    assert rule.symptoms, "a run without the symptom must not be confirmed of its cause"
    for name in rule.loop.agrees.values():
        assert RunProfile.model_fields[name].annotation == (float | None)


def test_a_rule_that_confirms_below_its_refutation_is_refused() -> None:
    with pytest.raises(ValidationError, match="must not be above"):
        LoopRule(runs="pad", figure="padding", at_least=1.1, below=1.3)


def test_an_unknown_setting_or_value_is_named() -> None:
    with pytest.raises(ExperimentError, match="no setting `speed`"):
        changed(LoopConfig(loop="load"), {"speed": 2})
    with pytest.raises(ExperimentError, match="cannot take"):
        changed(LoopConfig(loop="load"), {"num_workers": 99})


def test_a_sign_adds() -> None:
    assert changed(LoopConfig(loop="load", num_workers=2), {"num_workers": "+4"}).num_workers == 6


def loop(runs: str, run: RunProfile) -> tuple[LoopConfig, Setting]:
    return loop_of(run, LoopRule(runs=runs, figure="anything", at_least=1, below=1))


def test_loading_keeps_the_proportions_of_the_run() -> None:
    alone, _ = loop("load", RunProfile(data_share=0.75, num_workers=0))
    assert (alone.read_ms, alone.compute_ms) == (15.0, 5.0)
    shared, _ = loop("load", RunProfile(data_share=0.5, num_workers=4))
    assert (shared.num_workers, shared.read_ms, shared.compute_ms) == (4, 80.0, 10.0)


def test_what_no_loop_can_have_is_refused() -> None:
    with pytest.raises(ExperimentError, match="neither sequence lengths nor"):
        loop("pad", RunProfile())
    with pytest.raises(ExperimentError, match="did not record"):
        loop("hold", RunProfile(family="llama"))
    with pytest.raises(ExperimentError, match="token by token"):
        loop("decode", RunProfile(family="bert"))
    with pytest.raises(ExperimentError, match="no loop has bits = 1"):
        loop("score", RunProfile(weight_bits=1))


def test_a_setting_survives_its_journey_to_the_child() -> None:
    _, setting = loop("repeat", RunProfile(family="gpt2", num_layers=24, dropout=0.2))
    assert Setting.from_payload(setting.payload()) == setting._replace(notes=())
    assert (setting.depth, setting.dropout) == (24, 0.2)


def test_an_evaluation_keeps_its_outputs_unless_it_is_told_to_move_them() -> None:
    sizes = {"family": "llama", "hidden_size": 64, "num_layers": 2, "vocab_size": 100, "batch_size": 1, "seq_length": 8}
    run = RunProfile(symptoms=("eval_out_of_memory",), **sizes)
    kept, _ = loop("hold", run)
    assert (kept.keeps, kept.grad, kept.mode) == ("outputs", False, "eval")
    moved, _ = loop("hold", run.model_copy(update={"eval_accumulation_steps": 8}))
    assert moved.keeps == "number"

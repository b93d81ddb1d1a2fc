"""Every experiment of the knowledge base can be carried out: its fields exist, its arms differ in one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rca.experiments.interface import RunProfile
from rca.experiments.memory.question import MemoryQuestion
from rca.experiments.memory.verdicts import TASKS
from rca.experiments.symptoms import WORDS
from rca.experiments.twin.config import changed, differences, resolved, twin_of
from rca.rules.load import load
from rca.rules.schema import ExperimentRule

RULES = load().experiments
NORMS = [1.0 + step / 60 for step in range(60)]
TWINS = [rule for rule in RULES.values() if rule.kind == "twin"]


def test_the_three_experiments_of_the_card_exist() -> None:
    assert {"lr_tenth", "half_batch", "loss_fp32"} <= set(RULES)


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_it_says_what_it_means_and_was_measured(rule: ExperimentRule) -> None:
    assert rule.question.endswith("?")
    assert len(rule.says) > 60
    assert set(rule.symptoms) <= set(WORDS)
    assert "other" in rule.predicts
    assert rule.measured
    assert set(rule.confirms) <= set(rule.predicts)
    for cause in rule.confirms:
        assert rule.predicts[cause].confirmed > rule.predicts["other"].confirmed
    assert all(hasattr(RunProfile(), name) for name in rule.excludes)


@pytest.mark.parametrize("rule", TWINS, ids=lambda rule: rule.id)
def test_control_and_treatment_differ_in_exactly_one_field(rule: ExperimentRule) -> None:
    assert len(rule.change) == 1
    own = twin_of(RunProfile(family="llama", hidden_size=256, learning_rate=1e-3, batch_size=1)).config
    control = changed(own, rule.reproduces)
    assert len(differences(control, changed(control, resolved(rule.change, NORMS)))) <= 1
    if rule.reproduces:
        assert rule.planted
        assert differences(own, control)


@pytest.mark.parametrize("rule", [r for r in RULES.values() if r.kind == "memory"], ids=lambda rule: rule.id)
def test_memory_changes_name_sizes_of_a_step(rule: ExperimentRule) -> None:
    assert set(rule.change) <= set(MemoryQuestion.model_fields)
    assert rule.metric in TASKS


def test_no_cause_is_named_in_the_code(root: Path) -> None:
    causes = set(load().taxonomy) - {"none", "unknown"}
    for file in [*(root / "rca" / "experiments").rglob("*.py"), *(root / "rca" / "agent").rglob("*.py")]:
        text = file.read_text(encoding="utf-8")
        assert not [cause for cause in causes if cause in text], file

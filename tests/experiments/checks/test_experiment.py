"""A check through the real child process, and every way in which it cannot be tested."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rca.diagnosis import Experiment
from rca.experiments.checks.experiment import ProbeExperiment
from rca.experiments.checks.probes import CHECKS
from rca.experiments.interface import Material, RunProfile
from rca.experiments.workbench import Answer, Task, Workbench
from rca.rules.load import load
from tests.experiments.checks.conftest import write_lines

RULES = load().experiments
PROBES = [rule for rule in RULES.values() if rule.kind == "probe"]


@dataclass
class Silent:
    """A bench whose child always dies."""

    error: str = "the job was ended by SIGKILL"
    asked: list[Task] = field(default_factory=list)

    def run(self, tasks: Sequence[Task], *, deadline: float) -> list[Answer]:
        self.asked += tasks
        return [Answer(error=self.error) for _ in tasks]


def carry_out(name: str, bench: Any, folder: Path | None, **profile: Any) -> Experiment:
    material = Material(folder=folder)
    return ProbeExperiment(RULES[name], RunProfile(**profile), bench, time.monotonic() + 100, material).carry_out()


@pytest.mark.parametrize("rule", PROBES, ids=lambda rule: rule.id)
def test_every_rule_names_a_check_and_without_material_says_what_is_lacking(rule: Any, tmp_path: Path) -> None:
    assert rule.probe in CHECKS
    bench = Silent()
    for folder in (None, tmp_path):
        found = carry_out(rule.id, bench, folder)
        assert found.verdict == "not_testable"
        assert found.reason.startswith("Not tested: ")
        assert str(tmp_path) not in found.reason
    assert not bench.asked


def test_a_child_that_dies_is_no_verdict_about_the_run(tmp_path: Path) -> None:
    write_lines(tmp_path / "train.jsonl", [{"text": "a"}])
    found = carry_out("readable_samples", Silent(), tmp_path)
    assert found.verdict == "not_testable"
    assert "SIGKILL" in found.reason


@dataclass
class Answering(Silent):
    """A bench whose child found a hostile name in the files."""

    def run(self, tasks: Sequence[Task], *, deadline: float) -> list[Answer]:
        name = "\x1b[31m" + "\ud800" + "x" * 5000
        return [
            Answer(
                {
                    "tables": [],
                    "damaged": [[name, "ValueError"]],
                    "unread": [],
                    "hits": {},
                    "counts": {},
                    "looked_at": {},
                    "media": {"count": 0, "bad": [], "bad_count": 0},
                }
            )
        ]


def test_names_from_the_files_are_cleaned_and_cut(tmp_path: Path) -> None:
    write_lines(tmp_path / "train.jsonl", [{"text": "a"}])
    found = carry_out("readable_samples", Answering(), tmp_path)
    assert found.verdict == "confirmed"
    shown = found.reason + "".join(map("".join, found.details))
    assert shown.isprintable()
    assert len(found.reason) < 700
    shown.encode()


def test_rules_on_the_same_files_share_one_look(tmp_path: Path) -> None:
    write_lines(tmp_path / "train.jsonl", [{"text": "a"}])
    bench = Silent()
    for name in ("readable_samples", "empty_split", "ragged_samples"):
        carry_out(name, bench, tmp_path)
    assert len({task.key for task in bench.asked}) == 1


@pytest.mark.slow
def test_checks_work_in_the_child(tmp_path: Path, bench: Workbench) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    write_lines(tmp_path / "train.jsonl", [{"input_ids": [1, 2, 3]}, {"input_ids": [1, 99, 3]}])
    save_file({"w": np.ones((4, 4))}, tmp_path / "model.safetensors")
    assert carry_out("token_ids", bench, tmp_path, vocab_size=50).verdict == "confirmed"
    assert carry_out("weights_whole", bench, tmp_path).verdict == "refuted"
    (tmp_path / "tokenizer.json").write_text("{")
    found = carry_out("tokenizer_ids", bench, tmp_path)
    assert found.verdict == "not_testable"
    assert "did not finish" in found.reason
    (tmp_path / "config.json").write_text('{"model_type": "mine"}')
    found = carry_out("repeat_determinism", bench, tmp_path, family="cnn", repeat_spread=0.0)
    assert found.verdict == "refuted"


def test_no_cause_is_named_in_the_code(root: Path) -> None:
    causes = set(load().taxonomy) - {"none", "unknown"}
    for file in (root / "rca" / "experiments" / "checks").glob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert not [cause for cause in causes if cause in text], file

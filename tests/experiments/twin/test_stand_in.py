"""The run's own samples in place of synthetic data."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from rca.diagnosis import Experiment
from rca.experiments.interface import Material, RunProfile
from rca.experiments.twin.config import TwinConfig
from rca.experiments.twin.stand_in import APPLIES, with_supplied
from rca.experiments.twin.supplied import SuppliedBench, maker
from rca.experiments.workbench import Task
from rca.rules.load import load
from tests.experiments.conftest import PretendBench

RULES = load().experiments
STUCK = RunProfile(family="mlp", optimizer="adam", learning_rate=0.7, batch_size=8, symptoms=("diverged",))


def carry_out(data: Path, profile: RunProfile = STUCK) -> tuple[Experiment, PretendBench]:
    bench = PretendBench(lambda config, seed: math.nan if config.lr > 0.1 else 0.1)
    found = with_supplied(RULES["lr_tenth"], profile, bench, math.inf, Material(data=data))  # type: ignore[arg-type]
    return found, bench


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "train.csv"
    file.write_text("a,b,label\n" + "".join(f"{n},{-n},{n % 3}\n" for n in range(60)))
    return file


def test_samples_are_carried_over_and_said_so(table: Path) -> None:
    found, bench = carry_out(table)
    assert found.verdict == "confirmed", found.reason
    assert ("carried over", "60 rows of numbers in 3 classes that the user named") in found.details
    assert not any("data" in item for item in found.not_carried_over)
    assert "on 60 rows of numbers" in found.scope
    assert {config.labels for config in bench.asked} == {3}
    assert str(table.parent) not in found.model_dump_json()


def test_bad_samples_are_left_out_of_the_reference_only(table: Path) -> None:
    _, bench = carry_out(table)
    assert {config.skip_bad_batches for config in bench.asked if config.lr == 0.7} == {False}
    assert True in {config.skip_bad_batches for config in bench.asked}


def test_the_training_part_of_a_folder_is_used(table: Path) -> None:
    (table.parent / "a_test.csv").write_text("1,2\n3,4\n")
    assert carry_out(table.parent)[0].details[-1][1].startswith("60 rows")


@pytest.mark.parametrize(
    ("name", "text", "verdict", "says"),
    [
        ("a.csv", "1,2\n3,4\n", "error", "at least 40"),
        ("a.jsonl", json.dumps({"text": "x" * 3000}), "not_testable", "a twin of the class mlp learns rows of numbers"),
    ],
)
def test_samples_that_cannot_be_learnt_are_said(tmp_path: Path, name: str, text: str, verdict: str, says: str) -> None:
    (tmp_path / name).write_text(text)
    found, bench = carry_out(tmp_path / name)
    assert (found.verdict, bench.asked) == (verdict, [])
    assert says in found.reason


def test_an_empty_folder_is_not_testable(tmp_path: Path) -> None:
    assert carry_out(tmp_path)[0].verdict == "not_testable"


def test_a_run_without_a_model_class_takes_that_of_its_samples(table: Path) -> None:
    _, bench = carry_out(table, STUCK.model_copy(update={"family": None}))
    assert {config.family for config in bench.asked} == {"mlp"}


def test_what_was_supplied_reaches_trainings_and_nothing_else() -> None:
    asked: list[Task] = []

    class Watched(PretendBench):
        def run(self, tasks: Any, *, deadline: float) -> Any:
            asked.extend(tasks)
            return []

    bench = SuppliedBench(Watched(lambda config, seed: 0.0), {"data": "x"})  # type: ignore[arg-type]
    bench.run([Task("train", {"seed": 1}), Task("memory", {"a": 1})], deadline=math.inf)
    assert [task.payload for task in asked] == [{"seed": 1, "supplied": {"data": "x"}}, {"a": 1}]
    assert maker(None) is None


def test_the_settings_of_any_training_are_settings_of_the_twin() -> None:
    assert set(TwinConfig.model_fields) >= APPLIES

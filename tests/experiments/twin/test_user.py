"""A model of the user's own in the twin's place."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rca.diagnosis import Experiment
from rca.errors import UsageError
from rca.experiments.interface import Material, RunProfile
from rca.experiments.twin.stand_in import with_supplied
from rca.experiments.twin.supplied import program
from rca.experiments.workbench import Answer, Task, Workbench
from rca.rules.load import load
from rca.rules.schema import ExperimentRule

RULES = load().experiments
PROGRAM = """
import torch

def build(*, seed, settings):
    generator = torch.Generator().manual_seed(1)
    truth = torch.randn(8, 4, generator=generator)
    def batch(step, size=16):
        own = torch.Generator().manual_seed(1000 * seed + step)
        x = torch.randn(size, 8, generator=own)
        if {bad} and step % 20 == 13:
            x[0, 0] = float("nan")
        return {{"x": x, "y": (x @ truth).argmax(1).nan_to_num()}}
    return {{
        "model": torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)),
        "batches": batch,
        "loss": lambda model, batch: torch.nn.functional.cross_entropy(model(batch["x"]), batch["y"]),
        "eval": batch(10**6 + 3, 64),
    }}
"""

GOOD = PROGRAM.format(bad=False)


@dataclass
class Here(Workbench):
    """Does the tasks in this process."""

    device: str = "cpu"
    asked: list[Task] = field(default_factory=list)

    def run(self, tasks: Sequence[Task], *, deadline: float) -> list[Answer]:
        self.asked += tasks
        return [self._done(task) for task in tasks]

    def _done(self, task: Task) -> Answer:
        from rca.experiments.child import perform

        if task.key not in self.known:
            try:
                self.known[task.key] = Answer(perform(task.kind, dict(task.payload)))
            except Exception as error:
                self.known[task.key] = Answer(error=f"{type(error).__name__}: {error}")
        return self.known[task.key]


def carry_out(rule: ExperimentRule | str, file: Path, **profile: Any) -> Experiment:
    run = RunProfile(**{"optimizer": "sgd", "learning_rate": 0.1, "batch_size": 8, "precision": "fp32", **profile})
    chosen = RULES[rule] if isinstance(rule, str) else rule
    material = Material(twin=f"{file}:build")
    return with_supplied(chosen, run, Here(), time.monotonic() + 100, material)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    file = tmp_path / "my_twin.py"
    file.write_text(GOOD)
    return file


def test_a_rate_that_is_too_high_is_confirmed_on_the_users_model(good: Path, torch: Any) -> None:
    found = carry_out("lr_tenth", good, learning_rate=20.0, symptoms=("diverged",), failure_step=5)
    assert found.verdict == "confirmed", found.reason
    assert "the user's own model" in found.scope
    assert found.reference is not None
    assert found.reference.settings["optimizer"] == "adamw"
    assert any("width map" in item for item in found.not_carried_over)


@pytest.mark.slow
def test_a_rate_that_is_right_is_not_confirmed(good: Path, torch: Any) -> None:
    found = carry_out("lr_tenth", good, learning_rate=0.3, symptoms=("diverged",), failure_step=5)
    assert found.verdict in {"refuted", "not_reproduced"}, found.reason


def test_its_bad_batches_are_found_and_left_out(tmp_path: Path, torch: Any) -> None:
    file = tmp_path / "my_twin.py"
    file.write_text(PROGRAM.format(bad=True))
    found = carry_out("skip_bad_batch", file, symptoms=("nan_abrupt",), failure_step=13)
    assert found.verdict == "confirmed", found.reason
    assert "planted" not in found.scope


def test_what_belongs_to_the_twins_own_model_is_not_testable(good: Path, torch: Any) -> None:
    for name, symptom, says in (("label_shift", "plateau", "label_offset"), ("unfreeze", "stuck", "frozen")):
        found = carry_out(name, good, symptoms=(symptom,))
        assert found.verdict == "not_testable"
        assert says in found.reason
    halved = RULES["batch_x4"].model_copy(update={"change": {"batch": "x0.5"}})
    assert "smaller" in carry_out(halved, good, symptoms=("plateau",)).reason


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def build(*, seed, settings):\n    return 1 / 0\n", "my_twin.py, line 2 in build: ZeroDivisionError"),
        ("import torch\nx = (\n", "my_twin.py, line 2: SyntaxError"),
        ("raise SystemExit('usage')\n", "my_twin.py, line 1: SystemExit: usage"),
        ("raise ImportError('no such package')\n", "my_twin.py, line 1: ImportError: no such package"),
        ("def make(): pass\n", "no function `build`"),
        ("def build(*, seed, settings):\n    return {'model': 1}\n", "lacks batches, loss, eval"),
        ("def build(*, seed, settings):\n    return 3\n", "must return a dict"),
        ("def build():\n    pass\n", "TypeError"),
        (GOOD.replace('model(batch["x"])', 'model(batch["z"])'), "my_twin.py, line 16: KeyError"),
        (GOOD.replace("torch.nn.functional.cross_entropy", "(lambda *a: 1.0) if 1 else "), "one number as a tensor"),
    ],
)  # fmt: skip
def test_errors_in_the_users_program_are_told_with_their_line(tmp_path: Path, torch: Any, text: str, says: str) -> None:
    file = tmp_path / "my_twin.py"
    file.write_text(text)
    found = carry_out("lr_tenth", file, symptoms=("diverged",))
    assert found.verdict == "error"
    assert re.search(says, found.reason), found.reason


@pytest.mark.parametrize("named", ["my_twin.py", "my_twin:build", "absent.py:build", "my_twin.py:1x", ":build"])
def test_a_wrong_name_is_a_usage_error(named: str) -> None:
    with pytest.raises(UsageError, match=r"--twin"):
        program(named)


def test_the_example_in_the_readme_trains(root: Path, tmp_path: Path, torch: Any) -> None:
    from rca.experiments.twin.config import TwinConfig
    from rca.experiments.twin.supplied import USER, maker
    from rca.experiments.twin.train import train_arm

    text = (root / "README.md").read_text(encoding="utf-8")
    file = tmp_path / "my_twin.py"
    file.write_text(text[text.index("# my_twin.py") :].partition("```")[0])
    make = maker({"program": program(f"{file}:build"), "settings": {"batch": 16}})
    config = TwinConfig(family=USER, lr=0.01)
    result = train_arm(config, 0, make=make)
    assert result["eval_loss"] < 0.5 * result["chance"]

"""`rca experiment`, and what Ctrl-C leaves of an analysis."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from rca.cli import cli
from rca.cli_experiment import options_of, seconds
from rca.diagnosis import Arm, Diagnosis, Effect, Experiment, Round, Table
from rca.errors import UsageError
from rca.report.experiment_text import experiment_text
from tests.test_cli import SAMPLES

GIVEN = {"budget": "60s", "limit": None, "device": "auto", "data": None, "twin": None, "baseline": None}
FOUND = Experiment(
    id="lr_tenth",
    title="One tenth of the learning rate",
    question="Does the training recover when nothing but the learning rate is divided by ten? " * 2,
    tests=("numerics.lr_too_high",),
    prediction="The twin fails like the run.",
    change="one tenth of the learning rate",
    control=Arm(name="control", seeds=(0, 1, 2), values=(1.3, 1.3, float("nan"))),
    treatment=Arm(name="treatment", seeds=tuple(range(7)), values=(0.1,) * 7),
    effect=Effect(metric="share of the learnable gap lost", value=1.2, low=1.0, high=1.4, recovered=0.95),
    verdict="confirmed",
    reason="The control shows NaN. " * 30,
    scope="a tiny twin",
    not_carried_over=("the data", "the depth"),
    details=(("loss", "3.5"),),
    seconds=12.0,
    table=Table(title="what if", columns=("change", "GiB"), rows=(("a " * 60, "1"), ("b", "2")), marked=1, note="n"),
)
LOG = Round(
    number=1, chosen="lr_tenth", before=(("numerics.lr_too_high", 0.5),), after=(("numerics.lr_too_high", 0.9),)
)


def test_one_experiment_fits_80_columns_and_says_everything() -> None:
    text = experiment_text(FOUND, round_=LOG)
    assert max(map(len, text.splitlines())) <= 80
    for part in (
        FOUND.prediction,
        "numerics.lr_too_high",
        "+1.2 (95 %",
        "confirmed.",
        "0.50 -> 0.90",
        "> b",
        "and 2 more",
    ):
        assert part in " ".join(text.split()), part


def test_what_was_never_started_is_shown_without_arms() -> None:
    text = experiment_text(
        Experiment(id="a", title="t", question="q", prediction="p", verdict="not_testable", reason="r.")
    )
    assert "not testable here. r." in text
    assert "arms" not in text


def test_the_list_has_every_experiment_with_its_question_cost_and_causes() -> None:
    runner = CliRunner()
    rows = json.loads(runner.invoke(cli, ["experiment", "list", "--json"]).output)
    assert {"lr_tenth", "bisect_config"} <= {row["id"] for row in rows}
    assert all(row["question"] and row["cost"] > 0 for row in rows)
    text = runner.invoke(cli, ["experiment", "list"]).output
    assert max(map(len, text.splitlines())) <= 80
    assert "numerics.lr_too_high" in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["lr_tenth"], "RUN_DIR"),
        (["no_such", SAMPLES / "lr_too_high" / "run"], "no experiment is called no_such"),
        (["lr_tenth", "absent"], "absent"),
        (["lr_tenth", SAMPLES / "lr_too_high" / "run", "--twin", "my_twin"], "FILE.py:FUNCTION"),
        (["lr_tenth", SAMPLES / "lr_too_high" / "run", "--data", "absent.jsonl"], "absent.jsonl"),
        (["lr_tenth", SAMPLES / "lr_too_high" / "run", "--limit", "soon"], "--limit 'soon'"),
    ],
)
def test_wrong_use_ends_in_a_sentence(arguments: list[object], says: str) -> None:
    result = CliRunner().invoke(cli, ["experiment", *map(str, arguments)])
    told = str(result.exception) if isinstance(result.exception, UsageError) else result.output
    assert says in told
    assert result.exit_code == (1 if isinstance(result.exception, UsageError) else 2)


def test_what_names_no_experiment_is_said() -> None:
    result = CliRunner().invoke(cli, ["experiment", "none", str(SAMPLES / "healthy" / "run"), "-q"])
    assert isinstance(result.exception, UsageError)
    assert "names no experiment" in str(result.exception)


def test_a_question_that_cannot_be_asked_of_a_run_is_answered_so() -> None:
    result = CliRunner().invoke(cli, ["experiment", "bisect_config", str(SAMPLES / "lr_too_high" / "run"), "--json"])
    found = json.loads(result.stdout)
    assert (result.exit_code, found["verdict"]) == (0, "not_testable")
    assert "--baseline" in found["reason"]


def test_times_are_understood_and_wrong_ones_name_their_option() -> None:
    assert [seconds(text) for text in ("90", "90s", "1.5m", "1h")] == [90, 90, 90, 3600]
    chosen = options_of({**GIVEN, "limit": "20s"}, experiments="auto")
    assert (chosen.budget_s, chosen.limit_s) == (60, 20)
    with pytest.raises(UsageError, match="--limit"):
        seconds("-1s", option="--limit")


def test_ctrl_c_during_the_experiments_writes_the_diagnosis_so_far(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rca", "analyze", str(SAMPLES / "lr_too_high" / "run"), "-f", "json"]
    process = subprocess.Popen([*command, "-o", str(tmp_path), "--budget", "600s"], stderr=subprocess.PIPE, text=True)
    child = _child_of(process.pid)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in told
    found = Diagnosis.model_validate_json(next(tmp_path.glob("*.json")).read_text())
    assert found.verdict.cause
    assert found.verdict.status != "confirmed"
    assert "interrupted" in found.log[-1].result
    assert any("interrupted" in warning for warning in found.warnings)
    assert not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2]


def _child_of(parent: int) -> int:
    """Wait for the process that carries experiments out."""
    for _ in range(600):
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                line, stat = (folder / "cmdline").read_bytes(), (folder / "stat").read_text()
            except OSError:
                continue
            if b"rca.experiments.child" in line and int(stat.rpartition(")")[2].split()[1]) == parent:
                return int(folder.name)
        time.sleep(0.1)
    raise AssertionError("no experiment was started")

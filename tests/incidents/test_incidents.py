"""Incidents from public reports: labelled well, first runs kept, and what is right today stays right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rca.evaluate import FIRST_RUN, FirstRun, evaluate, score
from rca.pipeline import Options
from rca.rules.load import load

HERE = Path(__file__).parent
SETS = sorted(file.parent for file in HERE.glob(f"*/{FIRST_RUN}"))
TRUTHS = sorted(HERE.glob("*/*/truth.json"))


def test_there_are_eight_sets_with_their_first_runs() -> None:
    assert [folder.name for folder in SETS] == [
        "eighth",
        "fifth",
        "first",
        "fourth",
        "second",
        "seventh",
        "sixth",
        "third",
    ]
    assert len(TRUTHS) >= 300


@pytest.mark.parametrize("folder", SETS, ids=lambda folder: folder.name)
def test_the_first_run_holds_a_verdict_for_every_incident(folder: Path) -> None:
    recorded = FirstRun.model_validate_json((folder / FIRST_RUN).read_text(encoding="utf-8"))
    assert set(recorded.verdicts) == {truth.parent.name for truth in folder.glob("*/truth.json")}


def test_every_incident_names_its_public_report_and_what_proves_the_cause() -> None:
    known = {*load().causes, "unknown"}
    for truth in TRUTHS:
        label = json.loads(truth.read_text(encoding="utf-8"))
        assert {label["cause"], *label.get("also_ok", [])} <= known, truth
        assert label["source"].startswith("https://"), truth
        assert label["why"], truth
        assert any((truth.parent / "run").iterdir()), truth


@pytest.mark.slow
@pytest.mark.parametrize("folder", SETS, ids=lambda folder: folder.name)
def test_nine_in_ten_are_right_by_now_and_no_healthy_run_is_accused(folder: Path) -> None:
    result = score(list(evaluate(folder, load(), options=Options(experiments="none"))))
    assert result.top1 >= 0.9, result.confusion
    assert result.false_alarms == 0
    assert result.withheld is not None
    assert result.withheld.confidently_wrong <= 0.1

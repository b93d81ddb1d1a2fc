"""An analysis whose experiments are killed, hang, eat memory or write garbage still ends with a diagnosis."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from rca.experiments import run
from rca.experiments.workbench import Workbench
from rca.pipeline import Options, analyze

HOSTILE = str(Path(__file__).with_name("hostile_child.py"))
ASKED = Options(experiments="lr_tenth,warmup", device="cpu", strict=True)


@pytest.fixture(autouse=True)
def _no_child_is_left() -> Iterator[None]:
    run.close()
    yield
    run.close()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("behaviour", "verdict", "said"),
    [
        ("kill", "error", "ended by SIGKILL"),
        ("abort", "error", "ended by SIGABRT"),
        ("hang", "not_testable", "time for experiments was over"),
        ("hoard", "error", "ran out of memory (limit 2 GiB beside the libraries)"),
        ("garbage", "error", "answered with something that is no result"),
        ("nonsense", "error", "the child process wrote something that is no answer"),
        ("dead", "error", "the child process did not start"),
    ],
)
def test_the_diagnosis_is_finished_and_says_what_became_of_the_experiment(
    behaviour: str, verdict: str, said: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = {"nonsense": "print('garbage')", "dead": "raise SystemExit('no torch')"}
    command = (
        (sys.executable, "-c", programs[behaviour]) if behaviour in programs else (sys.executable, HOSTILE, behaviour)
    )
    monkeypatch.setattr(run, "Workbench", partial(Workbench, command=command))
    diagnosis = analyze(
        root / "sample_logs" / "lr_too_high" / "run",
        options=replace(ASKED, budget_s=3.0 if behaviour == "hang" else 60.0),
    )
    assert diagnosis.verdict.cause not in {"none", "unknown"}
    assert diagnosis.verdict.status == "suspected"
    assert diagnosis.experiments
    first = diagnosis.experiments[0]
    assert (first.verdict, said in first.reason) == (verdict, True), first.reason
    assert diagnosis.log[0].result.startswith(f"{verdict}: ")
    assert diagnosis.log[-1].why
    if behaviour != "hang":
        assert [experiment.verdict for experiment in diagnosis.experiments] == ["error", "error"]

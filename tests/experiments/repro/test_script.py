"""Which experiments bring a script, what it tells, and what it never holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rca.diagnosis import Arm, Diagnosis, Experiment, Run, Verdict
from rca.experiments.interface import Material, RunProfile
from rca.experiments.repro.script import with_script
from rca.experiments.twin.config import TwinConfig, reference_of
from rca.redact import redact_diagnosis
from rca.rules.load import load

RULES = load().experiments
CONFIG = TwinConfig(family="mlp", lr=0.3)
PROFILE = RunProfile(family="mlp", learning_rate=0.3, optimizer="adamw")


def carried_out(**update: Any) -> Experiment:
    """An experiment as the twin reports it."""
    best = reference_of(CONFIG)
    fields: dict[str, Any] = {
        "id": "lr_tenth",
        "title": "One tenth of the learning rate",
        "question": "Does it recover?",
        "prediction": "It does.",
        "change": "one tenth of the learning rate",
        "control": _arm("control", CONFIG.model_dump(mode="json"), 0.9),
        "treatment": _arm("treatment", {"lr": 0.03}, 0.1),
        "reference": _arm("reference", {"lr": best.lr}, 0.0),
        "verdict": "confirmed",
        "reason": "It recovers.",
        "scope": "a tiny twin",
    }
    return Experiment(**{**fields, **update})


def _arm(name: str, settings: dict[str, Any], value: float) -> Arm:
    curve = tuple((float(step), 2.0) for step in range(60))
    return Arm(name=name, settings=settings, seeds=(0, 1, 2), values=(value,) * 3, curve=curve)


def script_of(found: Experiment, *, folder: str = "runs/llama-1b") -> Experiment:
    return with_script(found, RULES["lr_tenth"], PROFILE, material=Material(folder=Path(folder)))


def test_the_docstring_says_what_was_found_and_what_to_expect() -> None:
    text = script_of(carried_out()).script
    head = text[: text.index('"""', 3)]
    assert head.startswith('"""One tenth of the learning rate: the experiment `lr_tenth`')
    assert "on the run `llama-1b`" in head
    assert "Change: one tenth of the learning rate (lr 0.3 -> 0.03)" in head
    assert "Found (confirmed): It recovers." in head
    assert "seeds 0, 1, 2: control 0.9000 0.9000 0.9000; treatment 0.1000 0.1000 0.1000" in head
    assert "torch" in head
    assert "runs/" not in text
    assert 'TREATMENT = CONTROL | {"lr": 0.03}' in text


def test_what_did_not_run_has_no_script() -> None:
    for verdict in ("not_testable", "error", "invalid", "no_op"):
        found = carried_out(verdict=verdict)
        assert script_of(found) == found


def test_a_reason_stands_where_a_script_is_missing() -> None:
    for update in (
        {"control": _arm("control", {**CONFIG.model_dump(mode="json"), "surprise": 1}, 0.9)},
        {"treatment": _arm("treatment", {"vocab": 64}, 0.1)},
        {"control": None},
    ):
        found = script_of(carried_out(**update))
        assert found.script == ""
        label, why = found.details[-1]
        assert label == "script that repeats it"
        assert why.startswith("none: ")


def test_a_treatment_that_did_not_run_is_shown_and_said() -> None:
    found = script_of(carried_out(verdict="not_reproduced", treatment=None))
    assert "Not run for the report: the treatment" in found.script
    assert "TREATMENT = " in found.script


def test_a_change_that_changes_nothing_is_said() -> None:
    same = _arm("control", TwinConfig(family="mlp").model_dump(mode="json"), 0.9)
    rule = RULES["unfreeze"]
    found = with_script(carried_out(id=rule.id, control=same, treatment=None, verdict="refuted"), rule, PROFILE)
    assert "which is what the control has already" in found.script
    assert "TREATMENT" not in found.script


def test_a_bisection_shows_its_smallest_set() -> None:
    from rca.experiments.bisect import BISECTION

    smallest = _arm("treatment", {"lr": 0.03, "clip": 1.0}, 0.9)
    found = with_script(carried_out(treatment=smallest, reference=None), BISECTION, PROFILE)
    assert 'TREATMENT = CONTROL | {"lr": 0.03, "clip": 1.0}' in found.script
    assert "REFERENCE = " in found.script


def test_arms_on_what_the_user_supplied_have_no_script() -> None:
    found = with_script(carried_out(), RULES["lr_tenth"], PROFILE, material=Material(twin="my_twin.py:build"))
    assert found.script == ""
    assert "--twin or --data" in found.details[-1][1]


@pytest.mark.parametrize(
    "name",
    ['"""; import os; """', "a\nb\x1b[31m", "back\\slash\\", "x" * 5_000, "\u202eevil", "naïve-run"],
)
def test_hostile_names_stay_text(name: str) -> None:
    found = carried_out(reason=f"About {name}.", change=name, question=name, scope=name)
    text = script_of(found, folder="runs/" + name.replace("/", "-")[:200].replace("\x00", "")).script
    compile(text, "repro.py", "exec")
    assert text.count('"""') == script_of(carried_out()).script.count('"""')
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_redaction_covers_the_script_and_leaves_the_code_alone() -> None:
    plain = script_of(carried_out())
    secret = "hf_" + "Aq3Zx9Lm2Kp8Vn5Tr7Wb4Yd6Hc1Jf0Gs"
    telling = script_of(carried_out(reason=f"Failed at /home/adalovelace/job with {secret}."), folder="runs/r")
    for mode in ("default", "strict"):
        assert _redacted(plain, mode).script == plain.script
        text = _redacted(telling, mode).script
        assert "adalovelace" not in text
        assert secret not in text
        compile(text, "repro.py", "exec")


def _redacted(found: Experiment, mode: Any) -> Experiment:
    diagnosis = Diagnosis(
        rca_version="0",
        generated="2026-01-01T00:00:00Z",
        run=Run(name="r", path="r"),
        verdict=Verdict(cause="unknown", title="t", sentence="s", probability=0.5, words="", status="unknown"),
        experiments=(found,),
    )
    return redact_diagnosis(diagnosis, mode=mode).experiments[0]

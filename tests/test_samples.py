"""The shipped samples: runs of really faulty jobs, each diagnosed with its true cause, experiments included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rca.diagnosis import Diagnosis
from rca.pipeline import Options, analyze

SAMPLES = sorted((Path(__file__).resolve().parents[1] / "sample_logs").glob("*/truth.json"))
DECIDED_BY_EXPERIMENT = ("lr_too_high", "fp16_overflow", "bad_batch", "parameters_frozen")
"""Samples whose cause an experiment can confirm, and for whose rivals it must not."""


def accepted(truth: Path) -> set[str]:
    label = json.loads(truth.read_text())
    return {label["cause"], *label["also_ok"]}


@pytest.mark.parametrize("truth", SAMPLES, ids=lambda file: file.parent.name)
def test_the_true_cause_comes_first_by_rules_only(truth: Path) -> None:
    found = analyze(truth.parent / "run", options=Options(experiments="none", strict=True))
    assert found.verdict.cause in accepted(truth)


def test_the_folder_is_small_and_carries_no_path_of_the_machine_it_was_made_on() -> None:
    files = [file for truth in SAMPLES for file in truth.parent.rglob("*") if file.is_file()]
    assert len(SAMPLES) >= 8
    assert sum(file.stat().st_size for file in files) < 6 * 1024 * 1024
    home = str(Path.home()).encode()
    assert [file for file in files if home + b"/" in file.read_bytes()] == []


@pytest.fixture(scope="module")
def tested() -> dict[str, Diagnosis]:
    """Samples analysed with experiments."""
    chosen = [truth for truth in SAMPLES if truth.parent.name in DECIDED_BY_EXPERIMENT]
    return {
        truth.parent.name: analyze(truth.parent / "run", options=Options(budget_s=120, device="cpu"))
        for truth in chosen
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("experiment", "fault", "rival"),
    [
        ("lr_tenth", "lr_too_high", "fp16_overflow"),
        ("loss_fp32", "fp16_overflow", "lr_too_high"),
        ("skip_bad_batch", "bad_batch", "lr_too_high"),
    ],
)
def test_an_experiment_is_confirmed_on_its_fault_and_refuted_on_a_rival(tested, experiment, fault, rival) -> None:
    on_fault = {item.id: item.verdict for item in tested[fault].experiments}
    assert on_fault[experiment] == "confirmed"
    other = next(truth for truth in SAMPLES if truth.parent.name == rival)
    found = analyze(other.parent / "run", options=Options(experiments=experiment, budget_s=120, device="cpu"))
    assert [(item.id, item.verdict) for item in found.experiments] == [(experiment, "refuted")]
    assert found.verdict.cause in accepted(other)


@pytest.mark.slow
@pytest.mark.parametrize("name", DECIDED_BY_EXPERIMENT)
def test_a_confirmed_verdict_names_the_true_cause(tested, name) -> None:
    truth = next(file for file in SAMPLES if file.parent.name == name)
    verdict = tested[name].verdict
    assert verdict.cause in accepted(truth)
    assert verdict.status == "confirmed"
    assert tested[name].log

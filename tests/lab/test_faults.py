"""The catalogue: enough faults, real causes, severities that are kept apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rca.errors import UsageError
from rca.lab.faults import FAULTS, Fault, variant
from rca.lab.measure import variants
from rca.rules.load import load


def test_there_are_enough_faults_of_many_causes() -> None:
    faulty = [fault for fault in FAULTS.values() if fault.cause != "none"]
    assert len(faulty) >= 40
    assert len({fault.cause for fault in faulty}) >= 40
    domains = {fault.cause.split(".")[0] for fault in faulty}
    assert {"numerics", "optimization", "data", "memory", "performance", "weights", "inference", "code"} <= domains
    assert sum(fault.processes > 1 for fault in faulty) >= 5


@pytest.fixture(scope="module")
def causes() -> set[str]:
    return set(load().taxonomy)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.name)
def test_a_fault_has_a_true_cause_and_severities_that_are_kept_apart(fault: Fault, causes: set[str]) -> None:
    assert {fault.cause, *fault.also_ok} <= causes
    assert not set(fault.severities) & set(fault.unseen)
    assert len({*fault.severities.values(), *fault.unseen.values()}) == len(fault.severities) + len(fault.unseen)
    assert (Path(__file__).parents[2] / "rca" / "lab" / "jobs" / f"{fault.job}.py").is_file()
    assert re.fullmatch(r"[a-z0-9_]+", fault.name)


def test_what_the_evaluation_runs_on_was_not_counted() -> None:
    counted = {item.name for item in variants((), (0, 1), unseen=False, architectures=("llama",))}
    evaluated = {item.name for item in variants((), (100,), unseen=True, architectures=("llama", "gpt2"))}
    assert not counted & evaluated
    assert len(evaluated) >= 200
    assert len(evaluated) == len(variants((), (100,), unseen=True, architectures=("llama", "gpt2")))


def test_a_variant_names_its_arguments() -> None:
    made = variant("lr_too_high", severity="rate 1.5", architecture="gpt2", seed=7)
    assert made.arguments[-5:] == ("--learning-rate", "1.5", "--architecture", "gpt2", "--seed=7")
    assert made.name == "lr_too_high-rate_1.5-gpt2-7"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"fault": "lr_to_high"}, "did you mean 'lr_too_high'"),
        ({"fault": "lr_too_high", "severity": "mild"}, "it has rate 1"),
        ({"fault": "lr_too_high", "architecture": "bert"}, "it has llama, gpt2"),
        ({"fault": "bad_batch", "architecture": "gpt2"}, "has no transformer"),
    ],
)
def test_what_does_not_exist_is_said_with_what_does(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        variant(**options)

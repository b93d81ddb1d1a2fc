"""Experiments that really run: on the fault that they test, and on a rival."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from rca.diagnosis import Experiment
from rca.errors import UsageError
from rca.experiments.interface import RunProfile
from rca.experiments.repeat import repeat
from rca.experiments.run import experimenter
from rca.rules.load import load

RULES = load().experiments
MLP: dict[str, Any] = {"family": "mlp", "optimizer": "adam", "num_labels": 10, "batch_size": 32, "precision": "fp32"}
LR = RunProfile(**MLP, learning_rate=1.0, symptoms=("diverged",), failure_step=3)
BAD = RunProfile(**MLP, learning_rate=1e-3, max_grad_norm=1.0, symptoms=("nan_abrupt",), failure_step=44)
FROZEN = RunProfile(**MLP, learning_rate=3e-3, symptoms=("stuck",))
HALF = RunProfile(
    **{**MLP, "precision": "fp16"}, learning_rate=4e-3, symptoms=("nan_at_start", "skipping"), failure_step=0
)
OOM = RunProfile(
    family="llama",
    hidden_size=2048,
    num_layers=22,
    num_attention_heads=32,
    num_key_value_heads=4,
    intermediate_size=5632,
    vocab_size=32000,
    optimizer="adamw",
    batch_size=16,
    seq_length=2048,
    precision="bf16",
    symptoms=("out_of_memory",),
    device_capacity_bytes=80 * 2**30,
)
TOO_LARGE = OOM.model_copy(
    update={"hidden_size": 4096, "num_layers": 32, "intermediate_size": 11008, "batch_size": 2, "seq_length": 256}
)


def carry_out(name: str, profile: RunProfile) -> Experiment:
    return experimenter(RULES[name], profile=profile, device="cpu", seconds=300)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "profile", "verdict"),
    [
        ("lr_tenth", LR, "confirmed"),
        ("lr_tenth", BAD, "refuted"),
        ("lr_tenth", HALF, "refuted"),
        ("loss_fp32", HALF, "confirmed"),
        ("loss_fp32", LR, "refuted"),
        ("skip_bad_batch", BAD, "confirmed"),
        ("skip_bad_batch", LR, "refuted"),
        ("unfreeze", FROZEN, "confirmed"),
        ("half_batch", OOM, "confirmed"),
        ("half_batch", TOO_LARGE, "refuted"),
        ("memory_estimate", TOO_LARGE, "confirmed"),
    ],
)
def test_confirmed_on_its_fault_and_refuted_on_a_rival(name: str, profile: RunProfile, verdict: str) -> None:
    found = carry_out(name, profile)
    assert found.verdict == verdict, found.reason
    assert found.reason
    assert found.scope


def test_the_repro_command_repeats_the_experiment() -> None:
    found = carry_out("skip_bad_batch", BAD)
    words = shlex.split(found.repro)
    assert words[:3] == ["python", "-m", "rca.experiments.repeat"]
    again = json.loads(repeat(words[3]))
    assert again["verdict"] == found.verdict
    assert again["reason"] == found.reason
    assert again["control"]["values"] == list(found.control.values if found.control else ())


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"experiment": "magic", "profile": {}}', '{"experiment": 3}'])
def test_a_wrong_description_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        repeat(text)


def test_no_time_is_a_verdict_too() -> None:
    found = experimenter(RULES["lr_tenth"], profile=BAD.model_copy(update={"seed": 1}), device="cpu", seconds=0)
    assert found.verdict in {"error", "inconclusive"} or "time" in found.reason or found.seconds < 5

"""Judging by arithmetic, with tracked bytes that are made up: weights 1 GiB a parameter unit, activations by tokens."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from rca.experiments.checks.experiment import ProbeExperiment
from rca.experiments.interface import RunProfile
from rca.experiments.memory.experiment import MemoryExperiment
from rca.experiments.memory.question import GIB, MemoryQuestion
from rca.experiments.workbench import Answer, Task
from rca.rules.load import load

RULES = load().experiments


@dataclass
class Tracked:
    """A bench whose step has `weights` GiB of weights and `per_token` GiB of activations a token."""

    weights: float = 2.0
    per_token: float = 0.01
    device: str = "cpu"

    def run(self, tasks: Sequence[Task], *, deadline: float) -> list[Answer]:
        return [Answer(self._answer(task)) for task in tasks]

    def _answer(self, task: Task) -> dict[str, float]:
        if task.kind == "probe":
            return {"graph": 2.0 * GIB, "outputs": 0.25 * GIB, "number": 0.0}
        question = MemoryQuestion.model_validate(task.payload)
        held = self.weights * GIB
        activations = question.batch * question.seq * self.per_token * GIB * (0.2 if question.checkpointing else 1)
        count = held / 4
        return {"forward_backward": held + activations, "weights": held, "parameters": count, "trainable": count}


def profile(**update: Any) -> RunProfile:
    base: dict[str, Any] = {
        "family": "llama",
        "hidden_size": 1024,
        "num_layers": 8,
        "num_attention_heads": 16,
        "vocab_size": 1000,
        "batch_size": 16,
        "seq_length": 512,
        "optimizer": "adamw",
        "device_capacity_bytes": 80 * GIB,
        "symptoms": ("out_of_memory",),
    }
    return RunProfile(**{**base, **update})


def carry_out(name: str, run: RunProfile, bench: Tracked | None = None) -> Any:
    kind = ProbeExperiment if RULES[name].kind == "probe" else MemoryExperiment
    return kind(RULES[name], run, bench or Tracked(), time.monotonic() + 60).carry_out()  # type: ignore[arg-type]


def test_half_the_batch_that_fits_confirms() -> None:
    found = carry_out("half_batch", profile())
    assert found.verdict == "confirmed"
    assert (found.control.values[0], found.treatment.values[0]) == pytest.approx((87.92, 46.96), abs=0.01)
    assert found.effect.value == pytest.approx(40.96, abs=0.01)
    rows = dict(found.details)
    assert "fits" in rows["gradient checkpointing"]
    assert "as the run" in rows
    assert "no training" in found.scope


def test_halving_again_and_again_is_tried() -> None:
    found = carry_out("half_batch", profile(batch_size=64))
    assert found.verdict == "confirmed"
    assert "Once is not enough" in found.reason


def test_a_model_that_fits_at_no_batch_refutes_the_batch_and_confirms_the_model() -> None:
    large = Tracked(weights=24.0, per_token=0.0001)
    assert carry_out("half_batch", profile(), large).verdict == "refuted"
    assert carry_out("memory_estimate", profile(), large).verdict == "confirmed"
    assert carry_out("memory_estimate", profile()).verdict == "refuted"


def test_a_batch_of_one_cannot_be_halved() -> None:
    assert carry_out("half_batch", profile(batch_size=1), Tracked(per_token=0.2)).verdict == "refuted"


def test_a_step_that_fits_is_not_reproduced() -> None:
    found = carry_out("half_batch", profile(batch_size=2))
    assert found.verdict == "not_reproduced"
    assert "something else" in found.reason


def test_an_outlier_in_length_is_the_length_and_not_the_batch() -> None:
    long = profile(sequence_outlier=4.0)
    assert carry_out("half_length", long).verdict == "confirmed"
    assert carry_out("half_batch", long).verdict == "mitigates"
    assert carry_out("half_length", profile()).verdict == "mitigates"


@pytest.mark.parametrize(
    ("update", "word"),
    [
        ({"device_capacity_bytes": None}, "capacity"),
        ({"hidden_size": None}, "hidden_size"),
        ({"family": "cnn"}, "cnn"),
        ({"symptoms": ("nan_abrupt",)}, "memory"),
        ({"oom_phase": "eval"}, "eval"),
        ({"num_attention_heads": 7}, "heads"),
    ],
)
def test_what_cannot_be_computed_is_not_testable_and_says_why(update: dict[str, Any], word: str) -> None:
    found = carry_out("half_batch", profile(**update))
    assert found.verdict == "not_testable"
    assert word in found.reason


def test_growth_like_a_kept_graph_confirms_a_leak_and_other_growth_does_not() -> None:
    run = profile(symptoms=("memory_grows",), growth_gib_per_step=1.7)
    assert carry_out("leak_slope", run).verdict == "confirmed"
    assert carry_out("leak_slope", run.model_copy(update={"growth_gib_per_step": 0.001})).verdict == "inconclusive"
    assert carry_out("leak_slope", run.model_copy(update={"growth_gib_per_step": None})).verdict == "not_testable"


@dataclass
class Counted:
    """A bench for which tokens cost four times as much without the cache, and the same with it."""

    device: str = "cpu"

    def run(self, tasks: Sequence[Task], *, deadline: float) -> list[Answer]:
        return [Answer({"without": 4.2, "with": 1.05}) for _ in tasks]


@pytest.mark.parametrize(
    ("update", "verdict"),
    [
        ({"token_growth": 3.5}, "confirmed"),
        ({"token_growth": 1.6}, "inconclusive"),
        ({"token_growth": 1.1}, "refuted"),
        ({"token_growth": 3.5, "use_cache": True}, "not_testable"),
        ({"token_growth": None}, "not_testable"),
        ({"token_growth": 3.5, "family": "bert"}, "not_testable"),
    ],
)
def test_tokens_that_slow_down_are_compared_with_the_arithmetic(update: dict[str, Any], verdict: str) -> None:
    found = carry_out("use_cache", profile(**update), Counted())  # type: ignore[arg-type]
    assert found.verdict == verdict
    assert found.reason


def test_without_the_cache_a_token_costs_what_its_prefix_costs() -> None:
    from rca.experiments.checks.probes import run_probe

    found = run_probe("token_cost", {"twin": {"family": "gpt2"}})
    assert found["without"] > 3.5
    assert found["with"] < 1.5

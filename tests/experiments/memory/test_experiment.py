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
        count = self.weights * GIB / 4
        activations = question.batch * question.seq * self.per_token * GIB * (0.2 if question.checkpointing else 1)
        width = 4 if question.weights == "fp32" else 2
        trainable = 0.01 * count if question.lora_r else count
        moments = {"start": (0.0, activations), "0 bottom": (trainable * width, 0.1 * activations)}
        return {
            "weights": count * width,
            "layer": count * width / 8,
            "parameters": count,
            "trainable": trainable,
            "matrices": 0.9 * count,
            "largest": 0.1 * count,
            **{f"{name}.logits": 0.0 for name in moments},
            **{f"{name}.gradients": held for name, (held, _) in moments.items()},
            **{f"{name}.activations": held for name, (_, held) in moments.items()},
        }


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
    rows = {row[0]: row for row in found.table.rows}
    assert rows["as the run"][-3:-1] == ("87.9", "no")
    assert rows["gradient checkpointing"][-2] == "fits"
    assert found.table.rows[found.table.marked][0] == "gradient checkpointing"
    assert found.table.paste == "gradient_checkpointing=True"
    assert "Cheapest that fits: gradient checkpointing" in found.reason
    assert "nothing was run" in found.scope


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


def test_a_failure_while_loading_is_no_matter_of_the_batch() -> None:
    loading = profile(oom_phase="load")
    assert carry_out("half_batch", loading).verdict == "refuted"
    assert carry_out("memory_estimate", loading, Tracked(weights=100.0)).verdict == "confirmed"
    assert carry_out("memory_estimate", loading, Tracked(weights=24.0)).verdict == "not_reproduced"


@pytest.mark.parametrize(
    ("update", "verdict"),
    [
        ({"batch_size": 13, "others_bytes": 10 * GIB}, "confirmed"),
        ({"batch_size": 2, "others_bytes": 10 * GIB}, "not_reproduced"),
        ({"batch_size": 64, "others_bytes": 10 * GIB}, "refuted"),
        ({"batch_size": 13, "others_bytes": GIB}, "refuted"),
        ({"batch_size": 13}, "refuted"),
    ],
)
def test_other_processes_are_the_cause_where_the_step_fits_without_them(update: dict[str, Any], verdict: str) -> None:
    assert carry_out("memory_alone", profile(**update)).verdict == verdict


@pytest.mark.parametrize(
    ("update", "verdict"),
    [
        ({"batch_size": 13, "reserved_unallocated_bytes": 10 * GIB, "tried_bytes": 2 * GIB}, "confirmed"),
        ({"batch_size": 13, "reserved_unallocated_bytes": 10 * GIB, "tried_bytes": 12 * GIB}, "refuted"),
        ({"batch_size": 2, "reserved_unallocated_bytes": 10 * GIB, "tried_bytes": 2 * GIB}, "not_reproduced"),
        ({"batch_size": 64, "reserved_unallocated_bytes": 10 * GIB, "tried_bytes": 2 * GIB}, "refuted"),
        ({"batch_size": 13, "tried_bytes": 2 * GIB}, "refuted"),
    ],
)
def test_gaps_are_the_cause_where_the_step_fits_without_them(update: dict[str, Any], verdict: str) -> None:
    assert carry_out("memory_gaps", profile(**update)).verdict == verdict


def test_the_cache_is_told_from_the_weights() -> None:
    serving = profile(oom_phase="generate", batch_size=1024, seq_length=2048, max_new_tokens=2048, precision="bf16")
    found = carry_out("cache_half", serving, Tracked(per_token=1e-6))
    assert found.verdict == "confirmed"
    assert "cache" in found.reason
    assert carry_out("half_batch", serving).verdict == "not_testable"
    heavy = Tracked(weights=100.0, per_token=1e-6)
    assert carry_out("cache_half", serving, heavy).verdict == "refuted"
    assert carry_out("memory_estimate", serving, heavy).verdict == "confirmed"
    assert carry_out("cache_half", serving, Tracked(per_token=1e-4)).verdict == "refuted"
    assert carry_out("cache_half", profile()).verdict == "not_testable"


def test_where_observed_and_predicted_bytes_disagree_the_arithmetic_is_doubted() -> None:
    """Twice: more was allocated than the step can ever take, and less than its weights."""
    much = profile(batch_size=16, device_capacity_bytes=80 * GIB, allocated_bytes=79 * GIB)
    agreed = carry_out("half_batch", much)
    assert agreed.verdict == "confirmed"
    assert "picture" not in agreed.reason
    light = carry_out("half_batch", profile(batch_size=2, allocated_bytes=79 * GIB))
    assert light.verdict == "not_reproduced"
    assert "79.0 GiB allocated where the arithmetic expects at most" in light.reason
    heavy = carry_out("half_batch", profile(allocated_bytes=GIB, oom_phase="forward"))
    assert heavy.verdict == "inconclusive"
    assert "at least 2.0 GiB of weights" in heavy.reason


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

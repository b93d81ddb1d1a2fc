"""The prediction against what real steps allocate on the CPU: within 5 %, in practice within 1 %."""

from __future__ import annotations

from typing import Any

import pytest

from rca.experiments.memory.arithmetic import peak_of
from rca.experiments.memory.question import traced
from tests.experiments.memory.allocator import allocated
from tests.experiments.memory.steps import SMALL, question

CASES: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama, eager": {"attention": "eager"},
    "llama, checkpointing": {"checkpointing": True},
    "llama, LoRA": {"lora_r": 8},
    "llama, LoRA on every matrix, checkpointing": {"lora_r": 8, "lora_targets": "linear", "checkpointing": True},
    "llama, multi-tensor Adam": {"batch": 1, "seq": 32, "foreach": True},
    "llama, forward pass only": {"task": "generate"},
    "gpt2": {"family": "gpt2"},
    "gpt2, eager, checkpointing": {"family": "gpt2", "attention": "eager", "checkpointing": True},
    "bert": {"family": "bert"},
    "bert, checkpointing": {"family": "bert", "checkpointing": True},
    "t5": {"family": "t5"},
}
HALF: dict[str, dict[str, Any]] = {
    "llama, autocast": {"compute": "bf16"},
    "llama, autocast, eager, checkpointing": {"compute": "bf16", "attention": "eager", "checkpointing": True},
    "llama, weights in bf16": {"weights": "bf16", "compute": "bf16"},
    "gpt2, autocast": {"family": "gpt2", "compute": "bf16"},
    "bert, autocast, eager": {"family": "bert", "compute": "bf16", "attention": "eager"},
    "t5, autocast": {"family": "t5", "compute": "bf16"},
}
"""Half precision is slow on a CPU: smaller steps."""


def ratio(change: dict[str, Any], sizes: dict[str, int]) -> float:
    from rca.experiments.memory.track import peak

    step = question(**{**sizes, "foreach": False, **change})
    predicted = peak_of(step, peak(traced(step)))
    return (predicted.total - predicted.cache) / allocated(step)


def test_a_prediction_agrees_with_the_allocator(torch: Any) -> None:
    assert ratio(CASES["gpt2"], SMALL) == pytest.approx(1, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_predictions_agree_with_the_allocator(torch: Any, name: str) -> None:
    assert ratio(CASES[name], SMALL) == pytest.approx(1, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", HALF)
def test_predictions_in_half_precision_agree_with_the_allocator(torch: Any, name: str) -> None:
    assert ratio(HALF[name], {**SMALL, "batch": 2, "seq": 64}) == pytest.approx(1, abs=0.05)

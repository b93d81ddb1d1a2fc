from __future__ import annotations

import pytest

from rca.errors import ExperimentError
from rca.experiments.interface import RunProfile
from rca.experiments.memory.question import GIB, apply, question_of, state_of, traced, usable
from tests.experiments.memory.steps import question


def test_changes_multiply_and_never_reach_zero() -> None:
    assert apply(question(batch=8), {"batch": "x0.5"}).batch == 4
    assert apply(question(batch=1), {"batch": "x0.5"}).batch == 1
    assert apply(question(), {"checkpointing": True}).checkpointing
    with pytest.raises(ExperimentError, match="depth"):
        apply(question(), {"depth": 3})
    with pytest.raises(ExperimentError, match="weights"):
        apply(question(), {"weights": "int3"})


def test_optimizers_are_known_by_their_names() -> None:
    found = [state_of(name, momentum) for name, momentum in (("adamw_bnb_8bit", None), ("sgd", 0.9), (None, None))]
    assert found == ["8bit", "momentum", "adam"]


def test_a_reserve_is_kept() -> None:
    assert usable(80 * GIB) == pytest.approx(76.2 * GIB, rel=0.001)


def test_deepspeed_in_half_precision_casts_the_weights() -> None:
    run = RunProfile(
        family="llama",
        hidden_size=64,
        num_layers=2,
        vocab_size=100,
        batch_size=1,
        seq_length=8,
        precision="bf16",
        zero_stage=2,
        world_size=4,
        optimizer="adamw_torch_fused",
        gradient_accumulation_steps=8,
    )
    step = question_of(run)
    assert (step.weights, step.zero_stage, step.devices, step.foreach, step.accumulation) == ("bf16", 2, 4, False, 8)
    plain = question_of(run.model_copy(update={"zero_stage": None}))
    assert (plain.weights, plain.compute) == ("fp32", "bf16")
    writing = question_of(run.model_copy(update={"oom_phase": "generate", "max_new_tokens": 50}))
    assert (writing.task, writing.new_tokens, writing.devices) == ("generate", 50, 1)


def test_one_trace_serves_all_that_is_arithmetic() -> None:
    alike = [
        question(),
        question(optimizer="8bit"),
        question(zero_stage=3, devices=8),
        question(foreach=False, accumulation=4),
    ]
    assert len({traced(step) for step in alike}) == 1
    assert traced(question(weights="nf4", lora_r=8)) == traced(question(weights="bf16", compute="bf16", lora_r=8))
    assert traced(question(task="serve", batch=64, lora_r=8)).batch == 1
    assert traced(question(batch=2)) != traced(question())

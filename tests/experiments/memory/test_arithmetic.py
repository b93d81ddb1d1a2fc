from __future__ import annotations

import pytest

from rca.experiments.memory.arithmetic import STEP, cache_bytes, least, peak_of, room
from rca.experiments.memory.question import GIB
from tests.experiments.memory.steps import question

COUNT = float(GIB)
TRACED = {
    "weights": 4.0 * GIB,
    "layer": 0.1 * GIB,
    "parameters": COUNT,
    "trainable": COUNT,
    "matrices": 0.9 * COUNT,
    "largest": 0.01 * COUNT,
    "start.gradients": 0.0,
    "start.logits": 1.0 * GIB,
    "start.activations": 5.0 * GIB,
    "0 bottom.gradients": 3.9 * GIB,
    "0 bottom.logits": 0.0,
    "0 bottom.activations": 0.5 * GIB,
}


def test_the_optimizer_step_of_adam_takes_twenty_bytes_a_parameter_and_sixteen_when_fused() -> None:
    plain = peak_of(question(), TRACED)
    assert (plain.total / GIB, plain.static / GIB, plain.moment) == (20, 16, STEP)
    fused = peak_of(question(foreach=False), TRACED)
    assert (fused.total / GIB, fused.moment) == (18, "start")


@pytest.mark.parametrize(("optimizer", "static"), [("sgd", 8), ("momentum", 12), ("8bit", 10.03), ("adafactor", 8.1)])
def test_optimizers_differ_by_their_state(optimizer: str, static: float) -> None:
    assert peak_of(question(optimizer=optimizer), TRACED).static == pytest.approx(static * GIB)


def test_zero_divides_state_then_gradients_then_weights() -> None:
    """ZeRO paper: 2 + 2 + 12 bytes a parameter in half precision, over the devices stage by stage."""
    half = {**TRACED, "weights": 2.0 * GIB, "0 bottom.gradients": 1.9 * GIB}
    static = [
        peak_of(question(weights="bf16", compute="bf16", zero_stage=stage, devices=8), half).static / GIB
        for stage in (1, 2, 3)
    ]
    assert static == pytest.approx([2 + 2 + 12 / 8, 2 + 14 / 8, 16 / 8])
    assert peak_of(question(weights="bf16", compute="bf16"), half).static == 8 * GIB


def test_replicas_pay_for_the_buckets_of_their_gradients() -> None:
    alone, two = peak_of(question(optimizer="sgd"), TRACED), peak_of(question(optimizer="sgd", devices=2), TRACED)
    assert two.total - alone.total == 4 * GIB


def test_accumulated_gradients_are_there_from_the_start() -> None:
    once = peak_of(question(optimizer="sgd"), TRACED)
    often = peak_of(question(optimizer="sgd", accumulation=4), TRACED)
    assert (once.gradients, often.gradients, often.total - once.total) == (0.0, 4 * GIB, 4 * GIB)


def test_four_bit_weights_pack_the_matrices_only() -> None:
    half = {**TRACED, "weights": 2.0 * GIB, "trainable": 0.01 * COUNT}
    packed = peak_of(question(weights="nf4", compute="bf16", lora_r=8), half)
    assert packed.weights == pytest.approx((0.1 * 2 + 0.9 * 0.516) * GIB)


def test_the_cache_is_two_times_layers_heads_width_bytes_tokens() -> None:
    serving = question(task="serve", weights="bf16", compute="bf16", batch=8, seq=4096, kv_heads=8)
    assert cache_bytes(serving) == 2 * 32 * 8 * 128 * 2 * 8 * 4096
    assert cache_bytes(serving.model_copy(update={"cache": "fp8", "devices": 2})) == cache_bytes(serving) / 4
    assert cache_bytes(question()) == 0
    assert room(serving.model_copy(update={"utilization": 0.5}), 80.0) == 40


def test_the_bound_without_a_trace_is_never_above_the_peak() -> None:
    for step in (question(), question(optimizer="8bit"), question(zero_stage=3, devices=4), question(task="generate")):
        assert least(step, TRACED) <= peak_of(step, TRACED).total

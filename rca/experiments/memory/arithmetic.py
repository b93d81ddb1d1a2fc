"""From the trace of one step to the predicted peak by component: optimizer state, sharding, quantization, cache.

Bytes a parameter: fp32 4, half types 2, NF4 with double quantization 0.516 (4 bits, one 8-bit scale per 64 weights and
one fp32 scale per 256 of those), int8 1. Adam keeps two values of the weights' type, 8-bit optimizers one byte each.
ZeRO in half precision keeps fp32 weights beside its state (ZeRO paper: 2 + 2 + 12 bytes a parameter).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rca.experiments.memory.question import MemoryQuestion, usable
from rca.experiments.twin.config import ENCODERS, SEQ2SEQ

WIDTH = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "nf4": 0.516}
STATE_BYTES: dict[str, float] = {
    "adam": 8,
    "momentum": 4,
    "sgd": 0,
    "adafactor": 0.1,
    "8bit": 2.03,
    "adagrad": 4,
    "lion": 4,
}
"""Optimizer state a parameter with fp32 weights; Adafactor keeps rows and columns, 8-bit states a scale per 256."""
_COPIES = frozenset({"adam", "adagrad"})
"""Optimizers whose multi-tensor step makes a copy as large as the weights (the square roots)."""
STEP = "optimizer step"


class Peak(NamedTuple):
    """Predicted bytes when most are taken, by what they are for."""

    weights: float
    gradients: float
    optimizer: float
    activations: float
    logits: float
    """Logits, their fp32 copy, the loss and its gradient."""
    cache: float
    """Key-value cache."""
    scratch: float
    """Workspace of the optimizer, buckets of the gradient exchange, gathered or unpacked weights."""
    moment: str = ""
    """When in the step."""
    static: float = 0.0
    """Weights, all gradients and optimizer state: what no batch size changes."""
    parameters: float = 0.0

    @property
    def total(self) -> float:
        """Sum of the components."""
        return sum(self[:7])


def peak_of(question: MemoryQuestion, traced: Mapping[str, float]) -> Peak:
    """Return the predicted peak of a step on one device, from the trace of `question.traced` sizes."""
    return _training(question, traced) if question.training else _inference(question, traced)


def weight_bytes(question: MemoryQuestion, traced: Mapping[str, float]) -> float:
    """Return the bytes of all weights on one device."""
    whole = traced["weights"]
    if question.weights in {"int8", "nf4"}:
        whole -= traced["matrices"] * (2.0 - WIDTH[question.weights])
    shared = question.zero_stage == 3 or (not question.training and question.task != "evaluate")
    return whole / question.devices if shared else whole


def least(question: MemoryQuestion, traced: Mapping[str, float]) -> float:
    """Return bytes that the step takes at any batch: a bound from the trace of the same model at other settings."""
    base = traced["parameters"] * WIDTH["bf16" if question.weights in {"int8", "nf4"} else question.weights]
    held = weight_bytes(question, {**traced, "weights": base})
    if not question.training or question.lora_r:
        return held
    return held + sum(_gradients_and_state(question, traced["parameters"]))


def cache_bytes(question: MemoryQuestion) -> float:
    """Return the bytes of the key-value cache on one device: 2 x layers x heads x width x bytes x tokens."""
    if question.task not in {"generate", "serve"} or question.family in ENCODERS:
        return 0.0
    kind = question.cache or (question.weights if question.weights in {"fp32", "bf16", "fp16"} else "bf16")
    if question.cache is None and question.weights == "fp32":
        kind = question.compute
    tokens = question.batch * (question.seq + question.new_tokens)
    head = question.head_dim or question.hidden // question.heads
    cross = 2 if question.family in SEQ2SEQ else 1
    return cross * 2 * question.layers * question.kv_heads * head * WIDTH[kind] * tokens / question.devices


def room(question: MemoryQuestion, capacity: float) -> float:
    """Return the bytes of the card that the step may take."""
    if question.task == "serve":
        return capacity * (question.utilization or 0.9)
    return usable(capacity)


def _gradients_and_state(question: MemoryQuestion, trainable: float) -> tuple[float, float]:
    width = 4.0 if question.weights == "fp32" else 2.0
    gradients, kept = trainable * width, STATE_BYTES[question.optimizer]
    state = trainable * (kept if question.optimizer == "8bit" else kept * width / 4)
    if question.zero_stage:
        if width == 2:
            state = trainable * (4 + kept)
        state /= question.devices
    if question.zero_stage >= 2:
        gradients /= question.devices
    return gradients, state


def _training(question: MemoryQuestion, traced: Mapping[str, float]) -> Peak:
    trainable = traced["trainable"]
    weights = weight_bytes(question, traced)
    gradients, state = _gradients_and_state(question, trainable)
    static = weights + gradients + state
    share = question.devices if question.zero_stage >= 2 else 1
    around = _around(question, traced)
    found = [
        Peak(
            weights,
            gradients if question.accumulation > 1 else traced[f"{moment}.gradients"] / share,
            state,
            traced[f"{moment}.activations"],
            traced[f"{moment}.logits"],
            0.0,
            around,
            moment,
        )
        for moment in (name.removesuffix(".logits") for name in traced if name.endswith(".logits"))
    ]
    found.append(Peak(weights, gradients, state, 0.0, 0.0, 0.0, _optimizer_scratch(question, traced), STEP))
    highest = max(found, key=lambda peak: peak.total)
    return highest._replace(static=static, parameters=traced["parameters"])


def _around(question: MemoryQuestion, traced: Mapping[str, float]) -> float:
    """Bytes that forward and backward pass need beside the tensors of the model."""
    extra = traced["largest"] * 2 if question.weights in {"int8", "nf4"} else 0.0
    if question.devices == 1:
        return extra
    share = traced["trainable"] / traced["parameters"]
    if question.zero_stage == 0:
        return extra + _gradients_and_state(question, traced["trainable"])[0]
    if question.zero_stage == 3:
        extra += 2 * traced["layer"]
    return extra + (traced["layer"] * share if question.zero_stage >= 2 else 0.0)


def _optimizer_scratch(question: MemoryQuestion, traced: Mapping[str, float]) -> float:
    width = 4.0 if question.weights == "fp32" else 2.0
    trainable = traced["trainable"]
    if question.foreach and question.optimizer in _COPIES:
        return trainable * width / (question.devices if question.zero_stage else 1)
    one = min(traced["largest"], trainable)
    return 0.0 if question.optimizer in {"sgd", "momentum"} or not question.foreach else 2 * 4.0 * one


def _inference(question: MemoryQuestion, traced: Mapping[str, float]) -> Peak:
    weights = weight_bytes(question, traced)
    unpacked = traced["largest"] * 2 if question.weights in {"int8", "nf4"} else 0.0
    activations, logits = traced["start.activations"], traced["start.logits"]
    cache = cache_bytes(question)
    return Peak(weights, 0.0, 0.0, activations, logits, cache, unpacked, "forward pass", weights, traced["parameters"])

"""Does a training step fit: the question, the arithmetic of weights and optimizer state, and the verdict.

The activations come from the tracker in the child process (`memory.py`); everything here is arithmetic.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, PositiveInt

from rca.errors import ExperimentError
from rca.experiments.interface import RunProfile
from rca.experiments.twin.config import DENSE, FAMILIES

GIB = 2**30
RESERVE_SHARE = 0.04
"""Share of the capacity kept for fragmentation (convention: allocators rarely use the last percents)."""
RESERVE_BYTES = int(0.6 * GIB)
"""Context of the driver and workspaces of the libraries (convention: 0.5 to 1 GiB on recent cards)."""
STATIC_TOO_LARGE = 0.92
"""Weights, gradients and optimizer state above this share of the capacity: no batch fits."""
STATIC_ROOMY = 0.7
"""Below this share it is the batch, not the model, that fills the card."""

_STATE_BYTES: dict[str, float] = {
    "adam": 8,
    "momentum": 4,
    "sgd": 0,
    "adafactor": 0.1,
    "8bit": 2,
    "adagrad": 4,
    "lion": 4,
}


class MemoryQuestion(BaseModel):
    """Sizes of one training step on one device."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    family: str
    hidden: PositiveInt
    layers: PositiveInt
    heads: PositiveInt
    kv_heads: PositiveInt
    ff: PositiveInt
    vocab: PositiveInt
    batch: PositiveInt
    seq: PositiveInt
    positions: int | None = None
    labels: PositiveInt = 2
    tied: bool | None = None
    weights: Literal["fp32", "bf16", "fp16"] = "fp32"
    compute: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Differs from `weights` under autocast."""
    attention: Literal["eager", "sdpa"] = "sdpa"
    checkpointing: bool = False
    lora_r: int = 0
    optimizer: str = "adam"
    """Which state it keeps: adam, momentum, sgd, adafactor, 8bit, adagrad, lion."""
    zero_stage: int = 0
    devices: PositiveInt = 1


class Peak(NamedTuple):
    """Predicted bytes of one step."""

    total: float
    static: float
    """Weights, gradients and optimizer state: what no batch size changes."""
    weights: float
    gradients: float
    optimizer: float
    activations: float
    parameters: float


def question_of(profile: RunProfile) -> MemoryQuestion:
    """Return the run's training step as a question.

    Raises ExperimentError naming what the run did not record.
    """
    if profile.family in DENSE or (profile.family and profile.family not in FAMILIES):
        raise ExperimentError(
            f"memory arithmetic knows the transformer classes, not `{profile.family}`; "
            "a table of torch.cuda.memory_summary() in the log would tell what fills the card"
        )
    needed = {
        "model_type": profile.family,
        "hidden_size": profile.hidden_size,
        "num_hidden_layers": profile.num_layers,
        "vocab_size": profile.vocab_size,
        "batch size": profile.batch_size,
        "sequence length": profile.seq_length,
    }
    missing = [name for name, value in needed.items() if not value]
    if missing:
        raise ExperimentError(
            f"the run did not record {', '.join(missing)}; with config.json and the batch it would do"
        )
    hidden = profile.hidden_size or 0
    heads = profile.num_attention_heads or max(1, hidden // 64)
    low = profile.precision or "fp32"
    weights = profile.weight_dtype or "fp32"
    if hidden % heads:
        raise ExperimentError(f"the recorded sizes do not fit together: hidden size {hidden}, {heads} heads")
    return MemoryQuestion(
        family=profile.family or "",
        hidden=hidden,
        layers=profile.num_layers or 0,
        heads=heads,
        kv_heads=profile.num_key_value_heads or heads,
        ff=profile.intermediate_size or 4 * hidden,
        vocab=profile.vocab_size or 0,
        batch=profile.batch_size or 0,
        seq=profile.seq_length or 0,
        positions=profile.max_position_embeddings,
        labels=profile.num_labels or 2,
        tied=profile.tie_word_embeddings,
        weights=weights,
        compute=weights if weights != "fp32" else low,
        attention="eager" if profile.attn_implementation == "eager" else "sdpa",
        checkpointing=bool(profile.gradient_checkpointing),
        lora_r=profile.lora_r or 0,
        optimizer=state_of(profile.optimizer, profile.momentum),
        zero_stage=profile.zero_stage or 0,
        devices=profile.world_size or 1,
    )


def state_of(optimizer: str | None, momentum: float | None) -> str:
    """Return which state an optimizer keeps; AdamW when it is not known."""
    name = (optimizer or "adamw").lower()
    if "8bit" in name:
        return "8bit"
    for kind in ("adafactor", "adagrad", "lion"):
        if kind in name:
            return kind
    if "sgd" in name:
        return "momentum" if momentum else "sgd"
    return "adam"


def peak_of(question: MemoryQuestion, tracked: dict[str, float]) -> Peak:
    """Add the optimizer state to the tracked step; divide what ZeRO divides."""
    trainable = tracked["trainable"]
    width = {"fp32": 4, "bf16": 2, "fp16": 2}[question.weights]
    sharded = question.zero_stage
    weights, gradients = tracked["weights"], trainable * width
    state = trainable * _STATE_BYTES[question.optimizer] * (width / 4 if question.optimizer != "8bit" else 1)
    if sharded and width == 2:
        state = trainable * (4 + _STATE_BYTES[question.optimizer])
    activations = tracked["forward_backward"] - weights
    if sharded >= 1:
        state /= question.devices
    if sharded >= 2:
        activations -= gradients * (1 - 1 / question.devices)
        gradients /= question.devices
    if sharded >= 3:
        weights /= question.devices
    static = weights + gradients + state
    scratch = trainable * width / (question.devices if sharded else 1) if question.optimizer == "adam" else 0.0
    total = max(weights + max(activations, gradients) + state, static + scratch)
    return Peak(total, static, weights, gradients, state, max(0.0, total - static), tracked["parameters"])


def usable(capacity: float) -> float:
    """Return the bytes of a card that tensors can have."""
    return capacity * (1 - RESERVE_SHARE) - RESERVE_BYTES


def rows(peaks: dict[str, Peak], capacity: float) -> tuple[tuple[str, str], ...]:
    """Return the what-if table: (change, predicted peak and whether it fits)."""
    room = usable(capacity)
    return tuple(
        (
            label,
            f"{found.total / GIB:.1f} GiB ({'fits' if found.total <= room else 'does not fit'}; weights "
            f"{found.weights / GIB:.1f}, gradients {found.gradients / GIB:.1f}, optimizer {found.optimizer / GIB:.1f}, "
            f"activations or scratch {found.activations / GIB:.1f})",
        )
        for label, found in peaks.items()
    )


def apply(question: MemoryQuestion, change: dict[str, Any]) -> MemoryQuestion:
    """Return the question with new values; a text such as `x0.5` multiplies (never below 1)."""
    update: dict[str, Any] = {}
    for name, value in change.items():
        if name not in MemoryQuestion.model_fields:
            raise ExperimentError(f"a memory experiment has no setting `{name}`")
        old = getattr(question, name)
        scaled = isinstance(value, str) and value[:1] == "x"
        update[name] = max(1, int(old * float(str(value)[1:]))) if scaled else value
    return MemoryQuestion.model_validate({**question.model_dump(), **update})

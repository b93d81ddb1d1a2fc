"""The sizes of one step, of training or of inference: what decides how much memory it takes.

Everything here is a value or arithmetic on values; the activations come from the trace in the child (`track.py`).
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, ValidationError

from rca.errors import ExperimentError
from rca.experiments.interface import RunProfile
from rca.experiments.twin.config import DENSE, FAMILIES, SEQ2SEQ

GIB = 2**30
RESERVE_SHARE = 0.04
"""Share of the capacity kept for fragmentation (convention: allocators rarely use the last percents)."""
RESERVE_BYTES = int(0.6 * GIB)
"""Context of the driver and workspaces of the libraries (convention: 0.5 to 1 GiB on recent cards)."""

Task = Literal["train", "evaluate", "generate", "serve"]


class MemoryQuestion(BaseModel):
    """Sizes of one step on one device."""

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
    """Tokens of one sample; of the prompt when generating, of the longest request when serving."""
    head_dim: PositiveInt | None = None
    """Width of one head where it is not `hidden / heads`; counts for the key-value cache only."""
    positions: int | None = None
    labels: PositiveInt = 2
    tied: bool | None = None
    task: Task = "train"
    weights: Literal["fp32", "bf16", "fp16", "int8", "nf4"] = "fp32"
    """Type in which the weights are kept; `int8` and `nf4` keep embeddings, norms and the head in bf16."""
    compute: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Differs from `weights` under autocast."""
    attention: Literal["eager", "sdpa"] = "sdpa"
    checkpointing: bool = False
    lora_r: NonNegativeInt = 0
    lora_targets: Literal["attention", "linear"] = "attention"
    """`attention`: the query and value projections; `linear`: every matrix of the layers."""
    optimizer: str = "adam"
    """Which state it keeps: adam, momentum, sgd, adafactor, 8bit, adagrad, lion."""
    foreach: bool = True
    """The optimizer handles all weights at once, as torch does on a GPU unless `fused=True`."""
    accumulation: PositiveInt = 1
    zero_stage: int = Field(default=0, ge=0, le=3)
    """ZeRO stage; FSDP with full sharding is stage 3."""
    devices: PositiveInt = 1
    """Devices that share the step: data parallel in training, tensor parallel in inference."""
    new_tokens: NonNegativeInt = 0
    cache: Literal["fp32", "bf16", "fp16", "fp8"] | None = None
    """Type of the key-value cache; that of the weights when None."""
    utilization: float = Field(default=0.0, ge=0, le=1)
    """Share of the card that a server takes at its start (`gpu_memory_utilization`); 0 where nothing is reserved."""

    @property
    def training(self) -> bool:
        """Whether gradients and optimizer state exist."""
        return self.task == "train"


def question_of(profile: RunProfile) -> MemoryQuestion:
    """Return the run's step as a question.

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
    if hidden % heads:
        raise ExperimentError(f"the recorded sizes do not fit together: hidden size {hidden}, {heads} heads")
    low = profile.precision or "fp32"
    stage = profile.zero_stage or 0
    # DeepSpeed casts the model itself when its half precision is on; autocast over fp32 weights is not what it does.
    weights = low if stage and low != "fp32" else profile.weight_dtype or "fp32"
    task: Task = {"eval": "evaluate", "generate": "generate"}.get(profile.oom_phase or "", "train")  # type: ignore[assignment]
    return checked(
        {
            "family": profile.family,
            "hidden": hidden,
            "layers": profile.num_layers,
            "heads": heads,
            "kv_heads": profile.num_key_value_heads or heads,
            "ff": profile.intermediate_size or 4 * hidden,
            "vocab": profile.vocab_size,
            "batch": profile.batch_size,
            "seq": profile.seq_length,
            "positions": profile.max_position_embeddings,
            "labels": profile.num_labels or 2,
            "tied": profile.tie_word_embeddings,
            "task": task,
            "weights": weights,
            "compute": weights if weights != "fp32" else low,
            "attention": "eager" if profile.attn_implementation == "eager" else "sdpa",
            "checkpointing": bool(profile.gradient_checkpointing),
            "lora_r": profile.lora_r or 0,
            "optimizer": state_of(profile.optimizer, profile.momentum),
            "foreach": "fused" not in (profile.optimizer or "").lower(),
            "accumulation": profile.gradient_accumulation_steps or 1,
            "zero_stage": min(stage, 3),
            "devices": (profile.world_size or 1) if task in {"train", "evaluate"} else 1,
            "new_tokens": profile.max_new_tokens or 0 if task == "generate" else 0,
        }
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


def apply(question: MemoryQuestion, change: dict[str, Any]) -> MemoryQuestion:
    """Return the question with new values; a text such as `x0.5` multiplies (never below 1)."""
    update: dict[str, Any] = {}
    for name, value in change.items():
        if name not in MemoryQuestion.model_fields:
            raise ExperimentError(f"a memory experiment has no setting `{name}`")
        old = getattr(question, name)
        scaled = isinstance(value, str) and value[:1] == "x" and isinstance(old, (int, float))
        update[name] = max(1, int(old * float(str(value)[1:]))) if scaled else value
    return checked({**question.model_dump(), **update})


def traced(question: MemoryQuestion) -> MemoryQuestion:
    """Return the question whose trace serves this one: all that is arithmetic takes its plainest value."""
    plain: dict[str, Any] = {
        name: MemoryQuestion.model_fields[name].default
        for name in (
            "head_dim",
            "optimizer",
            "foreach",
            "accumulation",
            "zero_stage",
            "devices",
            "cache",
            "utilization",
        )
    }
    plain["new_tokens"] = 0
    if question.weights in {"int8", "nf4"}:
        plain |= {"weights": "bf16", "compute": "bf16"}
    if question.task == "serve":
        plain |= {"task": "generate", "batch": 1}
    if not question.training:
        plain |= {"lora_r": 0, "lora_targets": "attention", "checkpointing": False}
    return question.model_copy(update=plain)


def stacks(question: MemoryQuestion) -> int:
    """Return how many stacks of `layers` layers the model has."""
    return 2 if question.family in SEQ2SEQ else 1


def usable(capacity: float) -> float:
    """Return the bytes of a card that tensors can have."""
    return capacity * (1 - RESERVE_SHARE) - RESERVE_BYTES


def checked(values: dict[str, Any]) -> MemoryQuestion:
    """Return the step of these values. Raises ExperimentError for values that make none."""
    try:
        return MemoryQuestion.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise ExperimentError(f"the sizes make no step: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error

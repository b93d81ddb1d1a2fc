"""The tiny twin: which small training stands in for the run, and what it does not take over.

Settings are values; nothing here trains. The learning rate is mapped by width (maximal-update parametrisation): the
groups of hidden matrices and of the head get `lr x D / d`, embeddings and norms keep `lr`, the standard deviation of
the initial weights grows by `sqrt(D / d)`. Measured over 4-16x in width: optimum and divergence boundary of AdamW then
agree within one doubling, while an unmapped twin misses the boundary by up to 5.7x.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from rca.errors import ExperimentError
from rca.experiments.interface import RunProfile

WIDTH, LAYERS, HEADS = 64, 2, 4
MAX_VOCAB, MAX_SEQ, MAX_BATCH, STEPS = 256, 32, 8, 60
USUAL_INIT = 0.02
"""Standard deviation from which nearly all transformer families draw their weights."""
SHORT_WARMUP = 15
"""Warm-up of a twin whose run failed after its own warm-up: a compressed one, so that the peak is reached warm."""
SGD_WIDTH_EXPONENT = 0.4
"""Measured for SGD at width 32-256: the boundary falls like d^-0.4, the same for all groups."""

_DECODERS = "llama mistral qwen2 qwen3 gpt2 gpt_neox gpt_neo gptj opt phi gemma falcon bloom stablelm olmo starcoder2"
DECODERS = frozenset(_DECODERS.split())
ENCODERS = frozenset({"bert", "roberta", "distilbert", "electra"})
SEQ2SEQ = frozenset({"t5", "bart"})
DENSE = frozenset({"cnn", "mlp"})
FAMILIES = DECODERS | ENCODERS | SEQ2SEQ | DENSE

_RECIPES: dict[str, dict[str, float]] = {
    "adam": {
        "gpt2": 0.002,
        "opt": 0.002,
        "gpt_neo": 0.002,
        "starcoder2": 0.002,
        "bart": 0.002,
        "cnn": 0.01,
        "t5": 0.008,
    },
    "sgd": {"mlp": 0.2, "cnn": 0.4, "t5": 0.8},
    "momentum": {"gpt2": 0.08, "opt": 0.08, "gpt_neox": 0.08, "t5": 0.16},
}
_RECIPE_ELSE = {"adam": 0.004, "sgd": 0.1, "momentum": 0.04}
"""Best learning rate of a doubling grid after 60 steps at width 64, one seed each; the reference arms train with it."""


class TwinConfig(BaseModel):
    """Everything that determines one arm; two arms of an experiment differ in exactly one field."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    family: str = "llama"
    width: int = WIDTH
    layers: int = LAYERS
    heads: int = HEADS
    kv_heads: int = HEADS
    ff: int = 172
    vocab: int = MAX_VOCAB
    labels: int = 10
    seq: int = MAX_SEQ
    init_std: float | None = None
    """Standard deviation of the initial weights, mapped to this width; None takes the family's own."""
    tied: bool | None = None
    dropout: float = 0.0
    optimizer: Literal["adamw", "adam", "sgd", "rmsprop", "adagrad"] = "adamw"
    lr: float = 0.004
    """Learning rate of embeddings, norms and biases."""
    lr_factor: float = 1.0
    """Multiplier for hidden matrices and the head: width of the run / width of the twin."""
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    momentum: float = 0.0
    weight_decay: float = 0.0
    warmup: int = 0
    clip: float = 0.0
    """Largest gradient norm; 0 does not clip."""
    batch: int = MAX_BATCH
    accumulation: int = 1
    precision: Literal["fp32", "fp16", "bf16"] = "fp32"
    """Of the forward and backward pass; weights stay in fp32, as under autocast."""
    scaler: bool = True
    """Loss scaling in fp16."""
    loss: Literal["cross_entropy", "exp_log"] = "cross_entropy"
    """`exp_log` is a softmax written by hand, without subtraction of the maximum."""
    loss_dtype: Literal["fp32", "low"] = "fp32"
    """`low` computes the loss in the half type of the run; autocast itself runs cross-entropy in fp32."""
    loss_reduction: Literal["mean", "sum"] = "mean"
    logit_offset: float = 0.0
    """Constant added to all logits; changes nothing in exact arithmetic."""
    activation_gain: float = 1.0
    """Factor inside the last feed-forward block, taken back behind it; changes nothing in exact arithmetic."""
    init_factor: float = 1.0
    """Initial weights over the usual ones."""
    frozen: Literal["none", "body", "all"] = "none"
    label_offset: int = 1
    """Distance between a token and its label; 1 is right for next-token prediction."""
    bad_batch: Literal["none", "nonfinite", "random", "unlabelled", "long"] = "none"
    """`long` stands for a batch of outliers under a summed loss: its gradient is thirty times as large."""
    bad_step: int = 20
    bad_every: int = 0
    """Steps between bad batches after the first; 0 means only one."""
    skip_bad_batches: bool = False
    steps: int = STEPS

    @property
    def objective(self) -> Literal["tokens", "seq2seq", "classes"]:
        """What is learnt."""
        if self.family in SEQ2SEQ:
            return "seq2seq"
        return "tokens" if self.family in DECODERS else "classes"

    @property
    def chance(self) -> float:
        """Loss of a model that knows nothing, in nats."""
        return math.log(self.labels if self.objective == "classes" else self.vocab)


class Twin(NamedTuple):
    """A twin of one run."""

    config: TwinConfig
    width_map: float
    """Width of the run / width of the twin; 1 where the width is unknown or does not matter."""
    width_known: bool
    not_carried_over: tuple[str, ...]


def twin_of(profile: RunProfile) -> Twin:
    """Scale the run down to a model that trains in a second.

    Raises ExperimentError when the profile holds values that no training can have.
    """
    lost: list[str] = []
    family, fields = _architecture(profile, lost)
    ratio = (profile.hidden_size or WIDTH) / WIDTH if family not in DENSE else 1.0
    optimizer, momentum = _optimizer(profile, lost)
    fields |= _learning_rate(profile, optimizer, ratio, lost)
    if family not in DENSE:
        fields["init_std"] = min(USUAL_INIT * math.sqrt(ratio), 0.25)
        if profile.initializer_range:
            fields["init_factor"] = min(profile.initializer_range / USUAL_INIT, 100.0)
    fields |= _batch(profile, lost)
    for name, value in (
        ("beta1", profile.adam_beta1),
        ("beta2", profile.adam_beta2),
        ("eps", profile.adam_eps),
        ("weight_decay", profile.weight_decay),
        ("clip", profile.max_grad_norm),
        ("precision", profile.precision),
        ("tied", profile.tie_word_embeddings),
    ):
        if value is not None:
            fields[name] = value
    _leave_behind(profile, lost)
    try:
        config = TwinConfig(family=family, optimizer=optimizer, momentum=momentum, **fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise ExperimentError(
            f"no twin can be built: {'.'.join(map(str, first['loc']))} = {first['input']!r}: {first['msg']}"
        ) from error
    known = family in DENSE or profile.hidden_size is not None
    return Twin(config=config, width_map=ratio, width_known=known, not_carried_over=tuple(lost))


def reference_of(config: TwinConfig) -> TwinConfig:
    """Return the known-good recipe on the same model and data: fp32, clean data, a learning rate that was measured."""
    kind = "momentum" if config.optimizer == "sgd" and config.momentum else config.optimizer
    kind = kind if kind in _RECIPES else "adam"
    defaults = TwinConfig()
    kept = {
        name: getattr(config, name)
        for name in ("family", "width", "layers", "heads", "kv_heads", "ff", "vocab", "labels", "seq", "tied", "steps")
    }
    if config.init_std is not None:
        kept["init_std"] = min(max(config.init_std, 0.02), 0.125)
    return defaults.model_copy(
        update={
            **kept,
            "optimizer": config.optimizer,
            "momentum": config.momentum,
            "lr": _RECIPES[kind].get(config.family, _RECIPE_ELSE[kind]),
            "batch": max(config.batch * config.accumulation, MAX_BATCH),
        }
    )


def changed(config: TwinConfig, change: dict[str, Any]) -> TwinConfig:
    """Return `config` with new values; a text such as `x0.1` multiplies.

    Raises ExperimentError for a field that the twin does not have or a value it cannot take.
    """
    update: dict[str, Any] = {}
    for name, value in change.items():
        if name not in TwinConfig.model_fields:
            raise ExperimentError(f"the twin has no setting `{name}`; it has {', '.join(TwinConfig.model_fields)}")
        old = getattr(config, name)
        if isinstance(value, str) and value[:1] == "x" and isinstance(old, (int, float)):
            product = old * float(value[1:])
            update[name] = max(1, round(product)) if isinstance(old, int) else product
        else:
            update[name] = value
    try:
        return TwinConfig.model_validate({**config.model_dump(), **update})
    except ValidationError as error:
        raise ExperimentError(f"the twin cannot take {update}: {error.errors()[0]['msg']}") from error


def differences(one: TwinConfig, other: TwinConfig) -> tuple[str, ...]:
    """Names of the fields in which two arms differ."""
    return tuple(name for name in TwinConfig.model_fields if getattr(one, name) != getattr(other, name))


def _architecture(profile: RunProfile, lost: list[str]) -> tuple[str, dict[str, Any]]:
    family = profile.family or ""
    if family not in FAMILIES:
        lost.append(
            f"the model class {family} (a generic pre-norm decoder stands in)"
            if family
            else "the model class (not recorded; a generic pre-norm decoder stands in)"
        )
        family = "llama"
    fields: dict[str, Any] = {}
    if family in DENSE:
        fields["labels"] = min(profile.num_labels or 10, 16)
        return family, {**fields, "width": 32 if family == "cnn" else WIDTH}
    heads = profile.num_attention_heads
    if heads and profile.num_key_value_heads:
        fields["kv_heads"] = min(HEADS, max(1, round(HEADS * profile.num_key_value_heads / heads)))
    if profile.hidden_size and profile.intermediate_size:
        fields["ff"] = min(512, max(32, 4 * round(WIDTH * profile.intermediate_size / profile.hidden_size / 4)))
    fields["vocab"] = max(32, min(profile.vocab_size or MAX_VOCAB, MAX_VOCAB))
    fields["seq"] = max(8, min(profile.seq_length or MAX_SEQ, MAX_SEQ))
    fields["labels"] = max(2, min(profile.num_labels or 4, 16))
    if (profile.num_layers or 0) > LAYERS:
        lost.append(f"depth ({profile.num_layers} layers, the twin has {LAYERS})")
    if (profile.seq_length or 0) > MAX_SEQ:
        lost.append(f"sequence length ({profile.seq_length}, the twin has {fields['seq']})")
    return family, fields


def _optimizer(profile: RunProfile, lost: list[str]) -> tuple[Any, float]:
    raw = (profile.optimizer or "").lower()
    for name, optimizer in (
        ("adamw", "adamw"),
        ("adagrad", "adagrad"),
        ("rmsprop", "rmsprop"),
        ("adam", "adam"),
        ("sgd", "sgd"),
    ):
        if name in raw and "adamax" not in raw:
            if name != raw.replace("_torch", "").replace("_fused", "").replace("torch.optim.", ""):
                lost.append(f"the variant of the optimizer ({raw}; plain {optimizer} stands in)")
            return optimizer, float(profile.momentum or 0.0) if optimizer == "sgd" else 0.0
    lost.append(f"the optimizer ({raw or 'not recorded'}; AdamW stands in)")
    return "adamw", 0.0


def _learning_rate(profile: RunProfile, optimizer: str, ratio: float, lost: list[str]) -> dict[str, Any]:
    rate = profile.learning_rate_at_failure or profile.learning_rate
    fields: dict[str, Any] = {}
    if rate is not None:
        fields["lr"] = rate * ratio**SGD_WIDTH_EXPONENT if optimizer == "sgd" else rate
    fields["lr_factor"] = 1.0 if optimizer == "sgd" else ratio
    if optimizer == "sgd" and ratio != 1.0:
        lost.append("an exact width map (for SGD only the trend d^-0.4 was measured)")
    if optimizer in {"rmsprop", "adagrad"} and ratio != 1.0:
        lost.append(f"a verified width map ({optimizer} is mapped like Adam)")
    if profile.lr_scheduler and profile.lr_scheduler not in {"constant", "none"}:
        lost.append(f"the {profile.lr_scheduler} schedule (the twin trains at the value it had at the failure)")
    warmup = profile.warmup_steps or 0
    if warmup and (profile.failure_step is None or profile.failure_step > warmup):
        fields["warmup"] = SHORT_WARMUP
        lost.append(f"the length of the warm-up ({warmup} steps, the twin has {SHORT_WARMUP})")
    return fields


def _batch(profile: RunProfile, lost: list[str]) -> dict[str, Any]:
    if profile.batch_size is None:
        return {}
    micro = max(1, min(profile.batch_size, MAX_BATCH))
    repeats = (profile.gradient_accumulation_steps or 1) * (profile.world_size or 1)
    accumulation = max(1, min(repeats, MAX_BATCH // micro))
    if profile.batch_size * repeats > micro * accumulation:
        lost.append(f"batch size ({profile.batch_size * repeats} a step, the twin has {micro * accumulation})")
    return {"batch": micro, "accumulation": accumulation}


def _leave_behind(profile: RunProfile, lost: list[str]) -> None:
    if (profile.failure_step or 0) > 10 * STEPS:
        lost.append(f"the time before the failure (step {profile.failure_step}, the twin trains {STEPS} steps)")
    if profile.pretrained:
        lost.append("the trained weights (the twin starts from random ones)")
    if profile.lora_r:
        lost.append(f"LoRA (rank {profile.lora_r}; all weights of the twin train)")
    if (profile.world_size or 1) > 1:
        lost.append(f"the {profile.world_size} processes (the twin is one)")
    lost.append("the data (the twin learns a synthetic sequence with structure)")

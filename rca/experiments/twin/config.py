"""The tiny twin: which small training stands in for the run, and what it does not take over.

Settings are values; nothing here trains. The learning rate is mapped by width (maximal-update parametrisation): the
groups of hidden matrices and of the head get `lr x D / d`, embeddings and norms keep `lr`, the standard deviation of
the initial weights grows by `sqrt(D / d)`. Measured over 4-16x in width: optimum and divergence boundary of AdamW then
agree within one doubling, while an unmapped twin misses the boundary by up to 5.7x.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from rca.errors import ExperimentError
from rca.experiments.interface import RunProfile
from rca.experiments.twin.families import (
    DECODERS,
    DENSE,
    ENCODERS,
    FAMILIES,
    HEADS,
    LAYERS,
    MAX_BATCH,
    MAX_SEQ,
    MAX_VOCAB,
    RECIPE_ELSE,
    RECIPES,
    SEQ2SEQ,
    SHORT_WARMUP,
    STEPS,
    WIDTH,
)
from rca.experiments.twin.mapping import fields_of

__all__ = [
    "DECODERS",
    "DENSE",
    "ENCODERS",
    "FAMILIES",
    "SEQ2SEQ",
    "SHORT_WARMUP",
    "Twin",
    "TwinConfig",
    "changed",
    "differences",
    "is_quantile",
    "reference_of",
    "resolved",
    "twin_of",
]

_FEWEST_NORMS = 5
_MOST_MOMENTUM = 0.95
_PLAIN_DEPTH = 3
"""Layers up to which a perceptron learns without residual connections."""


class TwinConfig(BaseModel):
    """Everything that determines one arm; two arms of an experiment differ in exactly one field."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    family: str = "llama"
    width: int = WIDTH
    layers: int = LAYERS
    """Blocks of a transformer, hidden layers of a multi-layer perceptron."""
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
    activation: str | None = None
    """What is between two layers, as transformers' configurations name it; None takes the family's own."""
    residual: bool = False
    """Each layer of a multi-layer perceptron adds to its input; transformers always do."""
    norm_eps: float | None = None
    """Epsilon of the norms; None takes the family's own."""
    attention: Literal["eager", "sdpa"] = "eager"
    seed: int = 0
    """Added to the seed of every arm: initial weights and order of the data."""
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
    decay: float = 1.0
    """Learning rate behind the decay over the peak; 1 stays at the peak."""
    decay_steps: int = 0
    """Steps over which the rate falls in a straight line after the warm-up; 0: until the last step."""
    clip: float = 0.0
    """Largest gradient norm; 0 does not clip."""
    batch: int = MAX_BATCH
    accumulation: int = 1
    accumulation_mean: bool = True
    """Each micro-batch counts with its share; otherwise their gradients add up."""
    zero_grad: bool = True
    """Gradients are cleared before every step; otherwise all earlier ones stay in them."""
    precision: Literal["fp32", "fp16", "bf16"] = "fp32"
    """Of the forward and backward pass; weights stay in fp32, as under autocast."""
    scaler: bool = True
    """Loss scaling in fp16."""
    init_scale: float = 65536.0
    growth_interval: int = 2000
    """Clean steps after which the loss scale doubles."""
    loss_factor: float = 1.0
    """Factor of the loss before the backward pass; changes nothing for Adam in exact arithmetic."""
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
    truncate: bool = False
    """Over-long batches are cut to the ordinary length."""
    padding: float = 0.0
    """Share of each training sequence that is padding."""
    masking: Literal["right", "none", "all"] = "right"
    """Labels that the loss leaves out: those of padding, none, or all of them."""
    samples: int = 0
    """Different training samples; 0 draws new ones for every step."""
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
    fields, ratio, lost = fields_of(profile)
    try:
        config = TwinConfig(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise ExperimentError(
            f"no twin can be built: {'.'.join(map(str, first['loc']))} = {first['input']!r}: {first['msg']}"
        ) from error
    known = config.family in DENSE or profile.hidden_size is not None
    return Twin(config=config, width_map=ratio, width_known=known, not_carried_over=tuple(lost))


def reference_of(config: TwinConfig) -> TwinConfig:
    """Return the known-good recipe on the same model and data: fp32, clean data, a learning rate that was measured."""
    kind = "momentum" if config.optimizer == "sgd" and config.momentum else config.optimizer
    kind = kind if kind in RECIPES else "adam"
    defaults = TwinConfig()
    kept = {
        name: getattr(config, name)
        for name in (
            *("family", "width", "layers", "heads", "kv_heads", "ff", "vocab", "labels", "seq", "tied", "steps"),
            *("attention", "seed"),
        )
    }
    if config.family == "mlp" and config.layers > _PLAIN_DEPTH:
        kept["residual"] = True
    if config.init_std is not None:
        kept["init_std"] = min(max(config.init_std, 0.02), 0.125)
    return defaults.model_copy(
        update={
            **kept,
            "optimizer": config.optimizer,
            "momentum": min(config.momentum, _MOST_MOMENTUM),
            "lr": RECIPES[kind].get(config.family, RECIPE_ELSE[kind]),
            "batch": max(config.batch * config.accumulation, MAX_BATCH),
        }
    )


def is_quantile(value: object) -> bool:
    """Whether a new value is a quantile of the control's own gradient norms, such as `q0.9`."""
    return isinstance(value, str) and re.fullmatch(r"q0?\.\d{1,4}", value) is not None


def resolved(change: Mapping[str, Any], norms: Sequence[float]) -> dict[str, Any]:
    """Return `change` with a text such as `q0.9` replaced by that quantile of the control's own gradient norms.

    Raises ExperimentError when the control has too few finite norms.
    """
    found = dict(change)
    for name, value in change.items():
        if is_quantile(value):
            usable = sorted(norm for norm in norms if math.isfinite(norm) and norm > 0)
            if len(usable) < _FEWEST_NORMS:
                raise ExperimentError(
                    f"`{name}: {value}` needs {_FEWEST_NORMS} finite gradient norms of the control arm, which has "
                    f"{len(usable)}"
                )
            share = float(str(value)[1:])
            found[name] = float(f"{usable[min(int(share * len(usable)), len(usable) - 1)]:.4g}")
    return found


def changed(config: TwinConfig, change: Mapping[str, Any]) -> TwinConfig:
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

"""From what a run recorded to the settings of its twin, and the list of what could not be taken over."""

from __future__ import annotations

import math
from typing import Any

from rca.experiments.interface import RunProfile
from rca.experiments.twin.families import (
    ACTIVATIONS,
    DENSE,
    EAGER_ONLY,
    FAMILIES,
    HEADS,
    LAYERS,
    MAX_BATCH,
    MAX_DEPTH,
    MAX_SEQ,
    MAX_VOCAB,
    SGD_WIDTH_EXPONENT,
    SHORT_WARMUP,
    STEPS,
    USUAL_INIT,
    WIDTH,
)

MOST_PADDING = 0.75
"""Share of padding in a twin's sequences: of 32 tokens, eight must be left to learn from."""
_ONSETS = frozenset({"nan_at_start", "nan_abrupt", "nan_after_growth", "nan_isolated", "skipping", "diverged"})
"""Symptoms that begin at a step, where the learning rate of that step counts."""


def fields_of(profile: RunProfile) -> tuple[dict[str, Any], float, list[str]]:
    """Return the settings of the twin, the width of the run over that of the twin, and what was left behind."""
    lost: list[str] = []
    family, fields = _architecture(profile, lost)
    fields["family"] = family
    ratio = (profile.hidden_size or WIDTH) / WIDTH if family not in DENSE else 1.0
    optimizer, momentum = _optimizer(profile, lost)
    fields |= {"optimizer": optimizer, "momentum": momentum}
    fields |= _learning_rate(profile, optimizer, ratio, lost)
    if family not in DENSE:
        fields["init_std"] = min(USUAL_INIT * math.sqrt(ratio), 0.25)
        if profile.initializer_range:
            fields["init_factor"] = min(profile.initializer_range / USUAL_INIT, 100.0)
    fields |= _batch(profile, lost)
    fields |= _labels(profile, family, lost)
    for name, value in (
        ("beta1", profile.adam_beta1),
        ("beta2", profile.adam_beta2),
        ("eps", profile.adam_eps),
        ("weight_decay", profile.weight_decay),
        ("clip", profile.max_grad_norm),
        ("precision", profile.precision),
        ("init_scale", profile.loss_scale_initial),
        ("growth_interval", profile.loss_scale_window),
        ("tied", profile.tie_word_embeddings),
        ("dropout", profile.dropout),
        ("loss_reduction", profile.loss_reduction),
        ("seed", None if profile.seed is None else profile.seed % 2**31),
    ):
        if value is not None:
            fields[name] = value
    _leave_behind(profile, lost)
    return fields, ratio, lost


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
        fields["labels"] = max(2, min(profile.num_labels or 10, 16))
        if family == "mlp" and profile.num_layers:
            fields["layers"] = min(profile.num_layers, MAX_DEPTH)
        if (profile.num_layers or 0) > fields.get("layers", 3):
            lost.append(f"depth ({profile.num_layers} layers, the twin has {fields.get('layers', 3)})")
        return family, {**fields, **_details(profile, family, lost), "width": 32 if family == "cnn" else WIDTH}
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
    return family, {**fields, **_details(profile, family, lost)}


def _details(profile: RunProfile, family: str, lost: list[str]) -> dict[str, Any]:
    """Activation, epsilon of the norms and kernel of the attention."""
    fields: dict[str, Any] = {}
    if profile.activation in ACTIVATIONS:
        fields["activation"] = profile.activation
    elif profile.activation:
        lost.append(f"the activation ({profile.activation}; the family's own stands in)")
    if profile.norm_eps is not None:
        fields["norm_eps"] = profile.norm_eps
    kernel = profile.attn_implementation
    if family in EAGER_ONLY:
        return fields
    if kernel == "sdpa":
        fields["attention"] = "sdpa"
    elif kernel and kernel != "eager":
        fields["attention"] = "sdpa"
        lost.append(f"the attention kernel ({kernel}; PyTorch's own stands in)")
    return fields


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
    began = bool(_ONSETS & set(profile.symptoms)) or not profile.symptoms
    peak = profile.learning_rate_peak or profile.learning_rate
    rate = (profile.learning_rate_at_failure or profile.learning_rate) if began else peak
    fields: dict[str, Any] = {}
    if rate is not None:
        fields["lr"] = rate * ratio**SGD_WIDTH_EXPONENT if optimizer == "sgd" else rate
    fields["lr_factor"] = 1.0 if optimizer == "sgd" else ratio
    if optimizer == "sgd" and ratio != 1.0:
        lost.append("an exact width map (for SGD only the trend d^-0.4 was measured)")
    if optimizer in {"rmsprop", "adagrad"} and ratio != 1.0:
        lost.append(f"a verified width map ({optimizer} is mapped like Adam)")
    if not began and profile.lr_warmup_share is not None:
        return fields | _shape(profile)
    if profile.lr_scheduler and profile.lr_scheduler not in {"constant", "none"}:
        lost.append(f"the {profile.lr_scheduler} schedule (the twin trains at the value it had at the failure)")
    warmup = profile.warmup_steps or 0
    if warmup and (profile.failure_step is None or profile.failure_step > warmup):
        fields["warmup"] = SHORT_WARMUP
        lost.append(f"the length of the warm-up ({warmup} steps, the twin has {SHORT_WARMUP})")
    return fields


def _shape(profile: RunProfile) -> dict[str, Any]:
    """The whole schedule in the twin's steps: what never learnt has no step at which it failed."""
    fields: dict[str, Any] = {}
    fields["warmup"] = round(min(profile.lr_warmup_share or 0.0, 1.0) * STEPS)
    if profile.lr_decay is not None and profile.lr_decay < 1:
        fields["decay"] = max(profile.lr_decay, 0.0)
        if profile.lr_half_share is not None:
            fields["decay_steps"] = max(1, round(2 * profile.lr_half_share * STEPS))
    return fields


def _labels(profile: RunProfile, family: str, lost: list[str]) -> dict[str, Any]:
    """Which labels count."""
    share = profile.ignored_share
    if share is None:
        return {}
    if share >= 1:
        return {"masking": "all"}
    if family in DENSE or share <= 0:
        return {}
    if share > MOST_PADDING:
        lost.append(f"the share of labels that do not count ({share:.2f}, the twin has {MOST_PADDING})")
    return {"padding": min(share, MOST_PADDING)}


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
    if profile.ignore_index not in {None, -100}:
        lost.append(f"the index that the loss ignores ({profile.ignore_index}; the twin uses -100)")
    lost.append("the data (the twin learns a synthetic sequence with structure)")

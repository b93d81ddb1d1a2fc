"""What the run used and how it failed, for building its twin: config events, metrics and facts -> RunProfile."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Protocol

import numpy as np

from rca.events import EventTable
from rca.experiments.interface import RunProfile
from rca.experiments.loop_profile import of_loops, symptoms_of_loops
from rca.experiments.memory_profile import of_memory
from rca.experiments.symptoms import MIN_SKIPS
from rca.experiments.training_profile import of_training, symptoms_of_training, with_start

_FAMILIES = (
    *("gpt_neox", "gpt_neo", "gptj", "gpt2", "distilbert", "roberta", "electra", "bert", "bart"),
    *("mistral", "mixtral", "llama", "qwen3", "qwen2", "starcoder2", "stablelm", "falcon", "bloom"),
    *("gemma", "olmo"),
)
"""Longer names first where one contains the other."""
_IMAGE_NETS = ("resnet", "vgg", "densenet", "efficientnet", "mobilenet", "convnext", "cnn", "unet", "yolo", "resnext")
_LOW = {"fp16", "float16", "half", "16", "16-mixed", "16-true", "torch.float16", "o1", "o2"}
_BRAIN = {"bf16", "bfloat16", "bf16-mixed", "bf16-true", "torch.bfloat16"}
_PRETRAINED = 0.6
"""A first loss below this share of the chance loss: the weights had been trained."""
OSCILLATES = 0.15
"""Spread of the loss around its trend, over its level: 0.19 at a batch of one, 0.09 at four, 0.03 at sixteen (twin)."""
TOKENS_SLOW_DOWN = 1.5
"""Growth of the time per token over the length from which it counts as a symptom."""
ABOVE_START = 1.5
"""A training that ends this many times above its first loss has diverged, whatever its shape."""
ABOVE_CHANCE = 1.2
"""A training that ends this many times above the loss of a uniform guess has not got anywhere, though it may fall."""
_GIB = 2**30


class FactLike(Protocol):
    """The part of a fact that is needed here."""

    @property
    def value(self) -> bool | int | float | str:
        """Its value."""


class _Reader:
    """Typed look-ups in the configuration and the facts; anything of the wrong type counts as not recorded."""

    def __init__(self, events: EventTable, facts: Mapping[str, FactLike]) -> None:
        self.events = events
        self.facts = facts

    def raw(self, key: str) -> Any:
        event = self.events.config(key)
        return None if event is None else event.attr("value", event.text if event.value is None else event.value)

    def number(self, key: str) -> float | None:
        event = self.events.config(key)
        if event is None:
            return None
        value = event.value
        if value is None:
            try:
                value = float(event.text)
            except ValueError:
                return None
        return value if math.isfinite(value) else None

    def whole(self, key: str, *, least: int = 1) -> int | None:
        value = self.number(key)
        return int(value) if value is not None and least <= value < 2**53 else None

    def positive(self, key: str) -> float | None:
        value = self.number(key)
        return value if value is not None and value > 0 else None

    def text(self, key: str) -> str | None:
        event = self.events.config(key)
        return event.text.strip().strip("'\"") or None if event is not None else None

    def flag(self, key: str) -> bool | None:
        value = self.raw(key)
        if isinstance(value, bool):
            return value
        text = str(value).strip().lower()
        return {"true": True, "1": True, "1.0": True, "yes": True, "false": False, "0": False, "0.0": False}.get(text)

    def fact(self, name: str) -> bool | int | float | str | None:
        found = self.facts.get(name)
        return None if found is None else found.value

    def fact_number(self, name: str) -> float | None:
        value = self.fact(name)
        return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None

    def fact_bytes(self, name: str) -> int | None:
        value = self.fact_number(name)
        return int(value * _GIB) if value is not None and value > 0 else None


def run_profile(events: EventTable, facts: Mapping[str, FactLike]) -> RunProfile:
    """Collect what the run left about its settings and its failure; what it did not say stays None."""
    read = _Reader(events, facts)
    family = _family(read)
    first_loss = read.fact_number("loss.first")
    vocab = read.whole("vocab_size")
    precision = _precision(read)
    symptom_step = _symptom_step(read)
    peak_rate = read.positive("learning_rate") or read.fact_number("lr.peak")
    return RunProfile(
        family=family,
        hidden_size=read.whole("hidden_size"),
        num_layers=read.whole("num_layers"),
        num_attention_heads=read.whole("num_attention_heads"),
        num_key_value_heads=read.whole("num_key_value_heads"),
        intermediate_size=read.whole("intermediate_size"),
        vocab_size=vocab,
        max_position_embeddings=read.whole("max_position_embeddings"),
        tie_word_embeddings=read.flag("tie_word_embeddings"),
        initializer_range=read.positive("initializer_range"),
        optimizer=read.text("optimizer"),
        learning_rate=peak_rate,
        learning_rate_at_failure=_rate_at(read, symptom_step),
        lr_scheduler=read.text("lr_scheduler"),
        warmup_steps=_warmup(read),
        adam_beta1=_unit(read.number("adam_beta1")),
        adam_beta2=_unit(read.number("adam_beta2")),
        adam_eps=read.positive("adam_eps"),
        momentum=_unit(read.number("momentum")),
        weight_decay=_not_negative(read.number("weight_decay")),
        batch_size=int(read.fact_number("memory.batch") or 0) or read.whole("batch_size"),
        gradient_accumulation_steps=read.whole("gradient_accumulation_steps"),
        world_size=read.whole("world_size") or (int(read.fact_number("run.world_size") or 0) or None),
        max_grad_norm=read.positive("max_grad_norm"),
        precision=precision,
        weight_dtype=_weight_dtype(read, precision),
        seq_length=_length(read, symptom_step),
        gradient_checkpointing=read.flag("gradient_checkpointing"),
        zero_stage=read.whole("zero_stage", least=0),
        lora_r=read.whole("lora_r"),
        failure_step=symptom_step,
        symptom_step=symptom_step,
        first_loss=first_loss,
        device_capacity_bytes=read.fact_bytes("oom.capacity_gib"),
        allocated_bytes=read.fact_bytes("oom.allocated_gib"),
        tried_bytes=read.fact_bytes("oom.tried_gib"),
        seed=read.whole("seed", least=0),
        symptoms=with_start(tuple(_symptoms(read)), read),
        pretrained=_pretrained(read, first_loss, vocab),
        num_labels=read.whole("num_labels"),
        attn_implementation=read.text("attn_implementation"),
        dropout=_unit(read.number("dropout")),
        sequence_outlier=read.fact_number("memory.seq_outlier"),
        oom_phase=_word(read.fact("oom.phase")),
        data_share=read.fact_number("step.data_share") or read.fact_number("trace.dataloader_share"),
        step_time_s=read.fact_number("step.median_s") or read.fact_number("trace.step_s"),
        num_workers=read.whole("num_workers", least=0),
        growth_gib_per_step=read.fact_number("memory.growth_gib_per_step"),
        token_growth=read.fact_number("latency.token_growth"),
        use_cache=read.flag("use_cache"),
        repeat_spread=read.fact_number("outputs.repeat_spread"),
        **of_loops(read),
        **of_memory(read),
        **of_training(read, symptom_step),
    )


def _symptoms(read: _Reader) -> Iterator[str]:
    if (read.events.of_kind("log") and read.fact("oom.phase") is not None) or read.fact("oom.tried_gib") is not None:
        yield "out_of_memory"
    if read.fact("memory.grows") is True:
        yield "memory_grows"
    if (read.fact_number("latency.token_growth") or 0.0) >= TOKENS_SLOW_DOWN:
        yield "tokens_slow_down"
    skips, floor = read.fact_number("loss_scale.longest_fall"), read.fact("loss_scale.at_floor")
    if (skips is not None and skips >= MIN_SKIPS) or floor is True:
        yield "skipping"
    nan = _kind_of_nan(read)
    if nan:
        yield nan
    elif read.fact("loss.diverged") is True or _ends_above_start(read):
        yield "diverged"
    elif read.fact("loss.plateau") is True:
        yield "stuck"
    elif read.fact("loss.plateau_late") is True:
        yield "plateau"
    elif (read.fact_number("loss.last_over_ln_vocab") or 0.0) >= ABOVE_CHANCE:
        yield "slow"
    if not nan and _oscillates(read):
        yield "oscillating"
    yield from symptoms_of_training(read)
    yield from symptoms_of_loops(read)


def _kind_of_nan(read: _Reader) -> str:
    if read.fact("loss.nan_at_start") is True:
        return "nan_at_start"
    if read.fact("loss.nan_isolated") is True:
        return "nan_isolated"
    if read.fact("loss.nan_step") is None and read.fact("grad_norm.nan_step") is None:
        return ""
    growth = read.fact_number("loss.growth_before_nan")
    if (growth is not None and growth >= 2) or read.fact("grad_norm.rising") is True:
        return "nan_after_growth"
    return "nan_abrupt"


def _ends_above_start(read: _Reader) -> bool:
    first, last, points = (read.fact_number(f"loss.{name}") for name in ("first", "last", "points"))
    return first is not None and last is not None and first > 0 and last >= ABOVE_START * first and (points or 0) >= 10


def _oscillates(read: _Reader) -> bool:
    """Relative to a loss near zero every noise is large: that is not meant."""
    spread, gained = read.fact_number("loss.oscillation"), read.fact_number("loss.improvement")
    return spread is not None and spread >= OSCILLATES and (gained is None or gained < 0.9)


def _symptom_step(read: _Reader) -> int | None:
    for name in ("loss.nan_step", "loss.diverged_step", "grad_norm.nan_step", "oom.step", "run.step_at_failure"):
        step = read.fact_number(name)
        if step is not None and step >= 0:
            return int(step)
    return None


def _rate_at(read: _Reader, step: int | None) -> float | None:
    """Learning rate when the symptom began; the highest one before it when the schedule had not started."""
    series = read.events.metric("learning_rate")
    if series is not None and step is not None and len(series):
        before = series.value[(series.position <= step) & np.isfinite(series.value)]
        if len(before) and before[-1] > 0:
            return float(before[-1])
    rate = read.fact_number("lr.at_failure")
    return rate if rate is not None and rate > 0 and step is not None else None


def _length(read: _Reader, step: int | None) -> int | None:
    series = read.events.metric("sequence_length")
    if series is not None and len(series):
        usable = series.value[np.isfinite(series.value)]
        if step is not None:
            near = series.value[(series.position <= step) & np.isfinite(series.value)]
            usable = near if len(near) else usable
        if len(usable) and usable[-1] >= 1:
            return int(usable[-1])
    return read.whole("seq_length")


def _warmup(read: _Reader) -> int | None:
    steps = read.whole("warmup_steps", least=0)
    seen = read.fact_number("lr.warmup_steps")
    if steps or seen:
        return steps or (int(seen) if seen else None)
    ratio, total = read.number("warmup_ratio"), read.number("max_steps") or read.fact_number("run.steps_planned")
    if ratio and total and 0 < ratio < 1:
        return round(ratio * total)
    return steps


def _family(read: _Reader) -> str | None:
    keys = ("model_type", "architectures", "model_name_or_path", "model", "model_name", "backbone", "base_model")
    names = [name for name in map(read.text, keys) if name]
    for name in names:
        found = _family_in(name[:200].lower())
        if found:
            return found
    if read.whole("vocab_size"):
        return None
    if any(read.raw(key) is not None for key in ("image_size", "img_size", "in_channels", "in_chans")):
        return "cnn"
    if any(read.raw(key) is not None for key in ("features", "num_features", "n_features", "in_features", "input_dim")):
        return "mlp"
    return names[0][:40].lower() if names else None


def _family_in(name: str) -> str | None:
    """Return the family that a model's name or class names; short names count only where a word begins."""
    if any(net in name for net in _IMAGE_NETS) or re.search(r"(?<![a-z])(vit|swin)(?![a-hj-z])", name):
        return "cnn"
    bare = name.replace("-", "").replace("_", "")
    for family in _FAMILIES:
        if family.replace("_", "") in bare:
            return "mistral" if family == "mixtral" else family
    short = re.search(r"(?<![a-z])(t5|mt5|phi|opt)(?=[^a-z]|$|for|model)", name)
    return short[1].replace("mt5", "t5") if short else None


def _precision(read: _Reader) -> Literal["fp32", "fp16", "bf16"] | None:
    for key, precision in (("fp16", "fp16"), ("bf16", "bf16")):
        if read.flag(key):
            return "fp16" if precision == "fp16" else "bf16"
    text = (read.text("precision") or "").lower()
    if text in _LOW or (text == "true" and read.events.metric("loss_scale") is not None):
        return "fp16"
    if text in _BRAIN:
        return "bf16"
    if text in {"fp32", "float32", "32", "32-true", "no", "none", "torch.float32"}:
        return "fp32"
    if read.events.metric("loss_scale") is not None:
        return "fp16"
    dtype = (read.text("torch_dtype") or "").lower()
    if dtype in _LOW:
        return "fp16"
    if dtype in _BRAIN:
        return "bf16"
    return "fp32" if read.flag("fp16") is False and read.flag("bf16") is False else None


def _weight_dtype(read: _Reader, precision: str | None) -> Literal["fp32", "fp16", "bf16"] | None:
    """Half weights only when the model was loaded in a half type and no autocast is configured."""
    dtype = (read.text("torch_dtype") or "").lower()
    if read.flag("fp16") or read.flag("bf16") or precision is None:
        return "fp32" if precision else None
    if dtype in _LOW and precision == "fp16":
        return "fp16"
    return "bf16" if dtype in _BRAIN and precision == "bf16" else "fp32"


def _pretrained(read: _Reader, first_loss: float | None, vocab: int | None) -> bool | None:
    if read.whole("lora_r") or read.flag("load_in_4bit"):
        return True
    share = read.fact_number("loss.first_over_ln_vocab")
    if share is None and first_loss is not None and vocab is not None and vocab > 1:
        share = first_loss / math.log(vocab)
    return None if share is None or read.whole("num_labels") else 0 < share < _PRETRAINED


def _unit(value: float | None) -> float | None:
    return value if value is not None and 0 <= value < 1 else None


def _not_negative(value: float | None) -> float | None:
    return value if value is not None and value >= 0 else None


def _word(value: object) -> str | None:
    return value if isinstance(value, str) else None

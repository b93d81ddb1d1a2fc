"""What must be on the device whatever the batch: weights, gradients, optimizer states, and the cache of a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.memory.device_memory import capacity_gib
from rca.facts.model.model_size import in_words, parameter_count, trainable_count
from rca.facts.training.curves import config_number, config_text
from rca.facts.training.learning_rate_range import family

CATALOGUE: Mapping[str, str] = {
    "model.parameters": "number of parameters: printed, or worked out from the configuration",
    "model.trainable_share": "trained over all parameters",
    "memory.weights_gib": "weights of the model in their precision, on one device (GiB)",
    "memory.gradients_gib": "gradients on one device (GiB)",
    "memory.optimizer_gib": "optimizer states and master weights on one device (GiB)",
    "memory.static_gib": "weights, gradients and optimizer states on one device (GiB)",
    "memory.static_share": "that over the memory of the device",
    "memory.weights_share": "weights alone over the memory of the device",
    "memory.kv_bytes_per_token": "key-value cache of one token over all layers (bytes)",
    "memory.kv_cache_gib": "key-value cache of one sequence of the configured length (GiB)",
}

GIB = 2.0**30
_STATES = {
    "adam": 8.0,
    "lamb": 8.0,
    "rmsprop": 4.0,
    "sgd": 4.0,
    "lion": 4.0,
    "adagrad": 4.0,
    "adafactor": 0.1,
    "muon": 4.0,
}
"""Bytes of fp32 optimizer state a trained parameter: two moments for Adam, one for momentum (PyTorch optim)."""


class Static(NamedTuple):
    """Bytes on one device that do not depend on the batch."""

    weights: float
    gradients: float
    optimizer: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.gradients + self.optimizer


def precision_bytes(events: EventTable) -> float | None:
    """Return bytes of one weight as it lies on the device, or None when the configuration does not say."""
    if _quantized(events):
        return 0.55 if _bits(events) == 4 else 1.05
    for key in ("torch_dtype", "precision"):
        text = config_text(events, key)
        if any(word in text for word in ("16-mixed", "mixed")):
            return 4.0
        if any(word in text for word in ("bfloat16", "float16", "bf16", "fp16", "half")) or text in {"16", "16-true"}:
            return 2.0
        if any(word in text for word in ("float32", "fp32")) or text in {"32", "32-true", "full"}:
            return 4.0
        if "fp8" in text or "float8" in text:
            return 1.0
    return None


def _quantized(events: EventTable) -> bool:
    return any(_true(config_text(events, key)) for key in ("load_in_4bit", "load_in_8bit")) or config_text(
        events, "quantization"
    ) in {"bitsandbytes", "gptq", "awq", "4bit", "8bit", "int4", "int8", "nf4"}


def _bits(events: EventTable) -> int:
    if _true(config_text(events, "load_in_8bit")) or config_text(events, "quantization") in {"8bit", "int8"}:
        return 8
    return 4


def _true(text: str) -> bool:
    return text in {"true", "1", "yes", "on"}


def static_memory(events: EventTable) -> Static | None:
    """Return the static memory of one device, or None when the model size is unknown.

    Mixed precision keeps fp32 weights (autocast) or fp32 master copies (fp16 and bf16 engines): 16 bytes a parameter
    with Adam (Rajbhandari et al. 2020, section 3.1). ZeRO divides optimizer states (1), gradients (2) and weights (3)
    by the number of data-parallel ranks; tensor and pipeline parallelism divide everything.
    """
    size = parameter_count(events)
    if size is None:
        return None
    count = size[0]
    split = (config_number(events, "tensor_parallel_size") or 1.0) * (
        config_number(events, "pipeline_parallel_size") or 1.0
    )
    count /= max(split, 1.0)
    each = precision_bytes(events)
    if not _trains(events):
        return Static(count * (each or 2.0), 0.0, 0.0)
    trained = min(trainable_count(events) or size[0], size[0]) / max(split, 1.0)
    mixed = _mixed(events)
    weight = each if each is not None else 4.0
    states = _STATES.get(family(events), 8.0)
    if "8bit" in config_text(events, "optimizer"):
        states = 2.0
    engine = config_number(events, "zero_stage") is not None and mixed
    weights = count * (2.0 if engine else weight)
    gradients = trained * (2.0 if engine or weight <= 2.0 else 4.0)
    optimizer = trained * (states + (4.0 if engine else 0.0)) * (0.5 if weight <= 2.0 and not engine else 1.0)
    stage = int(config_number(events, "zero_stage") or 0)
    share = max((config_number(events, "world_size") or float(len(events.ranks)) or 1.0) / max(split, 1.0), 1.0)
    return Static(
        weights / (share if stage >= 3 else 1.0),
        gradients / (share if stage >= 2 else 1.0),
        optimizer / (share if stage >= 1 else 1.0),
    )


def _mixed(events: EventTable) -> bool:
    return any(_true(config_text(events, key)) for key in ("fp16", "bf16")) or "mixed" in config_text(
        events, "precision"
    )


def _trains(events: EventTable) -> bool:
    names = set(events.metric_names)
    training = ("learning_rate", "optimizer", "gradient_accumulation_steps", "weight_decay", "max_steps", "epochs")
    return bool(names & {"loss", "grad_norm", "learning_rate"}) or any(
        events.config(key) is not None for key in training
    )


def statics(events: EventTable) -> Iterator[Fact]:
    """How much does the model need before the first sample?"""
    size = parameter_count(events)
    found = static_memory(events)
    if size is None or found is None:
        return
    says = f"The model has {in_words(size[0])} parameters ({size[1]})."
    yield from emit("model.parameters", size[0], says)
    trained = trainable_count(events)
    if trained is not None and trained <= size[0]:
        says = f"{in_words(trained)} of {in_words(size[0])} parameters are trained."
        yield from emit("model.trainable_share", trained / size[0], says)
    for name, value, words in (
        ("weights", found.weights, "Weights"),
        ("gradients", found.gradients, "Gradients"),
        ("optimizer", found.optimizer, "Optimizer states"),
    ):
        says = f"{words} take {number(value / GIB)} GiB a device."
        yield from emit(f"memory.{name}_gib", value / GIB, says, unit="GiB")
    total = found.total / GIB
    says = (
        f"{in_words(size[0])} parameters need {number(total)} GiB a device whatever the batch: weights "
        f"{number(found.weights / GIB)}, gradients {number(found.gradients / GIB)}, optimizer "
        f"{number(found.optimizer / GIB)} GiB."
    )
    yield from emit("memory.static_gib", total, says, unit="GiB")
    capacity = capacity_gib(events)
    if capacity:
        share = total / capacity
        yield from emit("memory.static_share", share, f"{says} That is {percent(share)} of {number(capacity)} GiB.")
        weights = found.weights / GIB / capacity
        says = f"The weights alone take {percent(weights)} of the {number(capacity)} GiB of the device."
        yield from emit("memory.weights_share", weights, says)


def cache(events: EventTable) -> Iterator[Fact]:
    """How much does the key-value cache of one sequence need?"""
    hidden, layers = config_number(events, "hidden_size"), config_number(events, "num_layers")
    heads = config_number(events, "num_attention_heads")
    if hidden is None or layers is None or heads is None or min(hidden, layers, heads) < 1:
        return
    groups = config_number(events, "num_key_value_heads") or heads
    head_size = config_number(events, "head_dim") or hidden / heads
    each = 1.0 if "fp8" in config_text(events, "kv_cache_dtype") else 2.0
    a_token = 2 * layers * groups * head_size * each
    says = f"One token takes {number(a_token)} bytes of key-value cache over {number(layers)} layers."
    yield from emit("memory.kv_bytes_per_token", a_token, says, unit="bytes")
    length = config_number(events, "max_model_len") or config_number(events, "max_position_embeddings")
    if length is not None and length > 0:
        size = a_token * length / GIB
        says = f"One sequence of {number(length)} tokens takes {number(size)} GiB of key-value cache."
        yield from emit("memory.kv_cache_gib", size, says, unit="GiB")


FACTS: tuple[FactFunction, ...] = (statics, cache)

"""How many parameters the model has: printed by the run, else worked out from its configuration."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from rca.events import EventTable
from rca.facts.memo import once_per_table
from rca.facts.training.curves import config_number, config_text

_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_COUNT = r"([0-9][0-9,_.]*) ?([KMBT]?)"
_PRINTED = (
    rf"(?i:all params): ?{_COUNT}\b",
    rf"(?i:number of (?:model )?param(?:eter)?s)(?: [a-z() ]{{0,30}})?[:=] ?{_COUNT}\b",
    rf"(?i:(?:total|model) (?:size|param(?:eter)?s))[:=]? ?{_COUNT}(?: total)?(?: param(?:eter)?s)?\b",
    rf"{_COUNT} +Total params\b",
    rf"\b{_COUNT}[ -](?i:param(?:eter)?s?)\b",
)
_TRAINABLE = (
    rf"(?i:trainable params): ?{_COUNT}\b",
    rf"(?i:number of trainable param(?:eter)?s)[ :=]+{_COUNT}\b",
    rf"{_COUNT} +Trainable params\b",
)


@lru_cache(maxsize=1)
def _compiled() -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    import re2

    return tuple(re2.compile(item) for item in _PRINTED), tuple(re2.compile(item) for item in _TRAINABLE)


@once_per_table
def parameter_count(events: EventTable) -> tuple[float, str] | None:
    """Return the number of parameters and where it comes from, or None."""
    printed = _search(events, 0)
    if printed is not None:
        return printed, "printed in the log"
    named = config_number(events, "num_parameters")
    if named is not None and named > 1000:
        return named, "from the configuration"
    worked_out = from_config(events)
    return None if worked_out is None else (worked_out, "worked out from the model configuration")


@once_per_table
def trainable_count(events: EventTable) -> float | None:
    """Return the number of trained parameters where it was printed."""
    return _search(events, 1)


def in_words(count: float) -> str:
    """Write a parameter count the way people say it: 6.74 B, 124 M, 45.2 K."""
    for unit in ("T", "B", "M", "K"):
        if count >= _UNITS[unit]:
            return f"{count / _UNITS[unit]:.3g} {unit}"
    return f"{count:.0f}"


def _search(events: EventTable, which: int) -> float | None:
    for event in events.of_kind("log"):
        if "param" not in event.text.lower():
            continue
        captured = event.attr("all" if which == 0 else "trainable")
        texts = [f"{'all' if which == 0 else 'trainable'} params: {captured}"] if captured else [event.text[:600]]
        for text in texts:
            for pattern in _compiled()[which]:
                match = pattern.search(text)
                value = _value(match[1], match[2]) if match is not None else None
                if value is not None and 1000 <= value < 1e14:
                    return value
    return None


def _value(digits: str, unit: str) -> float | None:
    try:
        return float(digits.replace(",", "").replace("_", "").rstrip(".")) * _UNITS[unit.upper()]
    except ValueError:
        return None


def from_config(events: EventTable) -> float | None:
    """Return the parameters of a transformer by arithmetic: attention, feed-forward and embeddings, norms left out.

    Gated feed-forwards (SiLU and GLU activations) have three matrices, others two; grouped key and value heads count.
    """
    hidden, layers = config_number(events, "hidden_size"), config_number(events, "num_layers")
    vocabulary = config_number(events, "vocab_size")
    if hidden is None or layers is None or vocabulary is None or min(hidden, layers, vocabulary) < 1:
        return None
    heads = config_number(events, "num_attention_heads") or 1.0
    groups = config_number(events, "num_key_value_heads") or heads
    head_size = config_number(events, "head_dim") or hidden / heads
    inner = config_number(events, "intermediate_size") or 4 * hidden
    activation = config_text(events, "hidden_act")
    gated = any(word in activation for word in ("silu", "swish", "glu")) or config_text(
        events, "model_type"
    ).startswith(("llama", "mistral", "qwen2", "qwen3", "gemma"))
    attention = 2 * hidden * heads * head_size + 2 * hidden * groups * head_size
    experts = config_number(events, "num_local_experts") or config_number(events, "num_experts") or 1.0
    feed_forward = (3 if gated else 2) * hidden * inner * experts
    tied = config_text(events, "tie_word_embeddings") in {"true", "1", "yes"} or not gated
    positions = 0.0 if gated else (config_number(events, "max_position_embeddings") or 0.0) * hidden
    return layers * (attention + feed_forward) + vocabulary * hidden * (1 if tied else 2) + positions

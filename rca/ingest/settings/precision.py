"""The numeric precision a job says it uses, whatever the key it says it with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

_WORDS = {
    "fp16": ("fp16", "float16", "half", "16", "16-mixed", "16-true", "torch.float16", "f16"),
    "bf16": ("bf16", "bfloat16", "bf16-mixed", "bf16-true", "torch.bfloat16"),
    "fp32": ("fp32", "float32", "32", "32-true", "no", "float", "torch.float32", "none"),
    "fp8": ("fp8", "float8", "fp8-mixed", "transformer-engine", "e4m3"),
    "fp64": ("fp64", "float64", "64", "64-true", "double"),
}
_OF_WORD = {word: name for name, words in _WORDS.items() for word in words}
_NAMED_KEYS = ("mixed_precision", "precision", "amp_dtype", "training.mixed_precision_param", "autocast_dtype", "dtype")
_SWITCHES = {
    "fp16": ("fp16", "fp16.enabled", "half", "use_fp16"),
    "bf16": ("bf16", "bf16.enabled", "bfloat16.enabled", "use_bf16"),
}


class Decided(NamedTuple):
    """The precision and the key that decided it."""

    precision: str
    key: str


def precision_word(value: Any) -> str | None:
    """Return fp16, bf16, fp32, fp8 or fp64 for what a setting says (`16-mixed`, `bfloat16`, `no`), or None."""
    return _OF_WORD.get(str(value).strip().strip("\"'").lower())


def precision_of(settings: Mapping[str, Any], *, training: bool) -> Decided | None:
    """Return the precision that settings (lower-case dotted key -> value) choose, or None where they do not say.

    Switches that are all off mean fp32: what a trainer does without mixed precision. A model file only says in which
    precision its weights are stored, so it decides nothing here.
    """
    if not training:
        return None
    for name, keys in _SWITCHES.items():
        for key in keys:
            if _on(settings.get(key)):
                return Decided(name, key)
    for key in _NAMED_KEYS:
        found = precision_word(settings[key]) if key in settings else None
        if found is not None:
            return Decided(found, key)
    off = [key for keys in _SWITCHES.values() for key in keys if settings.get(key) is False]
    return Decided("fp32", off[0]) if len(off) > 1 else None


def _on(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.strip().lower() in {"true", "yes", "on", "o1", "o2"})

"""Settings to configuration events: flattened, under one name per meaning, each with its place in the file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rca.events import EventBuilder
from rca.ingest.names import canonical_config
from rca.ingest.settings.precision import precision_of
from rca.ingest.tables.cells import number
from rca.ingest.tables.structured import flatten

MAX_SETTINGS = 2000
"""Settings kept of one file."""
_LONGEST = 1024
_MAX_LIST = 64
_LABEL_TABLES = ("id2label.", "label2id.")
_OWN_SIZES = frozenset({"vision_config", "audio_config", "speech_config", "teacher", "ema", "discriminator", "draft"})
"""Parts whose sizes are not the sizes of the model that trains."""
_EVALUATION = frozenset({"eval", "val", "valid", "validation", "test", "evaluation"})
_COMPONENTS = {
    "optimizer": "optimizer",
    "optim": "optimizer",
    "scheduler": "lr_scheduler",
    "lr_scheduler": "lr_scheduler",
}
_BIT_SWITCHES = frozenset({"load_in_4bit", "load_in_8bit"})
"""A switch that is off says nothing of the quantisation, so it does not take its name."""
_PRECISION_WORDS = frozenset({"precision", "mixed_precision", "fp16", "bf16", "amp_dtype"})
_OFF_BY_NULL = frozenset({"max_grad_norm"})
"""Settings of which a null tells that something is switched off."""
_WRAPPING = frozenset({"desc", "value"})
_CLASS_KEYS = ("_target_", "_component_", "class_path", "type", "name")


class Setting(NamedTuple):
    """One setting of one file."""

    name: str
    key: str
    """As the file writes it, dotted."""
    value: Any
    line: int | None = None
    offset: int | None = None


def setting_name(key: str, role: str) -> str:
    """Return the common name of a dotted key, where the part of the job that it belongs to leaves its meaning alone."""
    lower = key.lower().replace("-", "_")
    parts = lower.split(".")
    if role == "gguf":
        return lower
    if role in {"generation", "tokenizer"} and parts[-1] in {"max_length", "model_max_length"}:
        return lower
    if role == "model" and lower in {"dtype", "max_length"}:
        return "torch_dtype" if lower == "dtype" else lower
    if role == "trainer_state" and lower == "train_batch_size":
        return "batch_size"
    if set(parts[:-1]) & _OWN_SIZES or lower.startswith(_LABEL_TABLES) or parts[-1] in _BIT_SWITCHES:
        return lower
    if set(parts[:-1]) & _EVALUATION:
        return "eval_batch_size" if parts[-1] == "batch_size" else lower
    return canonical_config(key)


def add_settings(
    out: EventBuilder,
    document: Mapping[str, Any],
    *,
    role: str,
    text: str = "",
    prefix: str = "",
    line: int | None = None,
) -> int:
    """Add one configuration event a setting and the ones that follow from them; return how many were given.

    `text` is the file, to place the settings in it; `line` places all of them. A null says nothing and is left out,
    unless it switches something off.
    """
    places = _Places(text)
    found: list[Setting] = []
    for key, value in flatten(_unwrapped(document), limit=MAX_SETTINGS, prefix=prefix):
        if key.startswith(_LABEL_TABLES) or (value is None and setting_name(key, role) not in _OFF_BY_NULL):
            continue
        where, offset = (line, None) if line is not None or not text else places.next(key)
        found.append(Setting(setting_name(key, role), key, _plain(value), where, offset))
    found += list(_derived(document, found, role))
    for setting in found:
        _add(out, setting, role)
    return len(found)


def _add(out: EventBuilder, setting: Setting, role: str) -> None:
    value = setting.value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, str) and (parsed := number(value)) is not None and abs(parsed) < 1e300:
        value = int(parsed) if parsed.is_integer() and "." not in text and "e" not in text.lower() else parsed
    out.add(
        kind="config",
        name=setting.name,
        line=setting.line,
        offset=setting.offset,
        value=number(value),
        text=text[:_LONGEST],
        attrs={"key": setting.key, "value": value, "file_role": role},
    )


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold, of bounded size."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value[:_MAX_LIST]] if all(_flat(item) for item in value) else _written(value)
    if isinstance(value, str):
        return value[:_LONGEST]
    if isinstance(value, int) and abs(value) > 2**63:
        return float(value) if abs(value) < 10**300 else str(value)[:40]
    return value if isinstance(value, (bool, int, float)) else _written(value)


def _written(value: Any) -> str:
    try:
        return str(value)[:_LONGEST]
    except RecursionError:
        return "(nested too deeply to be written out)"


def _flat(item: Any) -> bool:
    return not isinstance(item, (list, dict, tuple))


def _unwrapped(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings themselves where a tracker wrapped each as `{desc, value}` (Weights & Biases)."""
    wrapped = {
        key: item["value"]
        for key, item in document.items()
        if isinstance(item, dict) and "value" in item and set(item) <= _WRAPPING and key != "_wandb"
    }
    return wrapped if len(wrapped) * 2 > len(document) else document


def _derived(document: Mapping[str, Any], found: list[Setting], role: str) -> Iterator[Setting]:
    """Yield settings that others imply: number of labels, optimizer class, betas, precision, quantisation."""
    labels = document.get("id2label")
    if role == "model" and isinstance(labels, dict) and "num_labels" not in document:
        yield Setting("num_labels", "id2label", len(labels))
    for setting in found:
        parts = setting.key.split(".")
        if (
            len(parts) > 1
            and parts[-1] in _CLASS_KEYS
            and parts[-2].lower() in _COMPONENTS
            and isinstance(setting.value, str)
        ):
            short = setting.value.rsplit(".", 1)[-1].lower()
            yield setting._replace(name=_COMPONENTS[parts[-2].lower()], value=short)
        if parts[-1].lower() == "betas" and isinstance(setting.value, list) and len(setting.value) == 2:
            yield setting._replace(name="adam_beta1", value=setting.value[0])
            yield setting._replace(name="adam_beta2", value=setting.value[1])
        if parts[-1] in _BIT_SWITCHES and setting.value is True:
            yield setting._replace(name="quantization", value=f"bitsandbytes-{parts[-1][8:]}")
    if role not in {"tokenizer", "preprocessor", "generation"}:
        yield from _precision(found, role)


def _precision(found: list[Setting], role: str) -> Iterator[Setting]:
    by_key = {setting.key.rsplit(".", 1)[-1].lower(): setting for setting in found if _decides(setting.key)}
    by_key |= {setting.key.lower(): setting for setting in found}
    decided = precision_of({key: setting.value for key, setting in by_key.items()}, training=role != "model")
    if decided is None:
        return
    stated = by_key[decided.key]
    # `16-true` and `16-mixed` say more than `fp16`: what is called precision keeps its word.
    if stated.name != "precision" or not isinstance(stated.value, str):
        yield stated._replace(name="precision", value=decided.precision)


def _decides(key: str) -> bool:
    """Say whether the last part of a nested key is a word for the precision of the job itself."""
    *above, last = key.lower().split(".")
    return last in _PRECISION_WORDS and not set(above) & (_EVALUATION | _OWN_SIZES)


class _Places:
    """Finds the line of one key after the other in a settings file."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._ascii = text.isascii()

    def next(self, key: str) -> tuple[int | None, int | None]:
        """Return the 1-based line and the byte offset of that line, or nothing where the key is not found."""
        last = key.rsplit(".", 1)[-1].split("[", maxsplit=1)[0]
        place = self._text.find(last, self._at)
        if place < 0:
            return None, None
        self._line += self._text.count("\n", self._at, place)
        start = self._text.rfind("\n", 0, place) + 1
        self._at = place + len(last)
        return self._line, start if self._ascii else None

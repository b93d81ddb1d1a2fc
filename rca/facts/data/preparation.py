"""How the files of a run prepare the inputs of one model: what they say must agree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rca.events import Event, EventTable
from rca.facts.emit import emit
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "preparation.conflict": "two files that scale or order the pixels of one model's inputs differently, in words",
    "tokenizer.case_conflict": "text is lower-cased in one place only, or against the name of the vocabulary",
    "tokenizer.template_conflict": "two files that name or print chat templates of different families, in words",
}
_Said = dict[str, dict[str, int]]
"""Source -> what it says -> one event that says so."""
_CENTRED, _UNIT, _IMAGENET, _CAFFE, _RAW = "-1 to 1", "0 to 1", "ImageNet's mean", "BGR mean", "0 to 255"
_OPTIONS = {"INCEPTION": _CENTRED, "VGG": _CAFFE, "NONE": _RAW}
"""Scaling options of Triton's image_client: INCEPTION is x / 127.5 - 1, VGG subtracts (123, 117, 104)."""
_WORDS = {"inception": _CENTRED, "imagenet": _IMAGENET, "caffe": _CAFFE, "vgg": _CAFFE, "tf": _CENTRED, "unit": _UNIT}
_FRACTION = re.compile(r"(\d{1,4}\.?\d{0,4}) ?/ ?(\d{1,4}\.?\d{0,4})")
_BRIGHT, _BYTE, _DARK = 50.0, 255.0, 0.5
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_CASE_KEYS = frozenset({"do_lower_case", "do_lowercase", "tokenizer_lowercase", "lowercase_tokens"})
_CASED = re.compile(r"(?:^|[-_/.])(?P<un>un)?cased(?:$|[-_/.])", re.I)
_ORDER = re.compile(r"(?:^|[._])(?:colou?r(?:_(?:order|space|mode|format))?|channel_order|channels|image_mode)$", re.I)
_TEMPLATE_KEYS = frozenset({"chat_template", "template", "prompt_template", "conversation_template", "chat_format",
                            "prompt_format", "conv_template", "prompt_style"})  # fmt: skip
_FAMILIES = (
    ("ChatML", re.compile(r"chat_?ml|qwen|<\|im_start\|>", re.I)),
    ("Llama 3", re.compile(r"llama[-_]?3|<\|start_header_id\|>", re.I)),
    ("Llama 2 / Mistral", re.compile(r"llama[-_]?2|mistral|mixtral|\[INST\]", re.I)),
    ("Gemma", re.compile(r"gemma|<start_of_turn>", re.I)),
    ("Vicuna", re.compile(r"vicuna|fastchat|USER:", re.I)),
    ("Alpaca", re.compile(r"alpaca|### Instruction", re.I)),
    ("Zephyr / Phi", re.compile(r"zephyr|phi[-_]?3|<\|user\|>", re.I)),
    ("DeepSeek", re.compile(r"deepseek|<｜User｜>", re.I)),
)


def pixels(events: EventTable) -> Iterator[Fact]:
    """Do all files scale pixels, and order their channels, in the same way?"""
    for what, said in (("scales pixels to", _scaling(events)), ("orders channels as", _order(events))):
        clash = _clash(said)
        if clash is not None:
            (one, first, event), (other, second, other_event) = clash
            words = (
                f"{one} {what} {first}, {other} to {second}" if "to" in what else f"{one}: {first}, {other}: {second}"
            )
            yield from emit("preparation.conflict", words, f"{words}.", events=[event, other_event])
            return


def _scaling(events: EventTable) -> _Said:
    found: _Said = {}
    unit: _Said = {}
    for event in events.of_kind("config"):
        key = str(event.attr("key", event.name)).lower()
        last = key.rsplit(".", 1)[-1]
        kind = None
        if last.endswith("mean") and isinstance(event.attr("value"), list):
            kind = _by_mean(_NUMBER.findall(event.text))
        elif last in {"scaling", "normalization", "normalisation", "normalize", "pixel_range", "input_range"}:
            kind = _OPTIONS.get(event.text.upper()) or _WORDS.get(event.text.lower()) or _by_range(event.text)
        elif last in {"rescale", "rescale_factor", "scale_factor", "pixel_scale"} and (factor := _factor(event)):
            kind = _CENTRED if abs(factor - 1 / 127.5) < 1e-4 else None
            if abs(factor - 1 / 255) < 1e-4:
                unit.setdefault(event.source, {}).setdefault(_UNIT, event.event_id)
        elif "totensor" in key or (last in {"type", "name", "_target_"} and "totensor" in event.text.lower()):
            unit.setdefault(event.source, {}).setdefault(_UNIT, event.event_id)
        if kind is not None:
            found.setdefault(event.source, {}).setdefault(kind, event.event_id)
    for event in events.named("preparation.scaling", kind="log"):
        kind = _told(event)
        if kind is not None:
            (unit if kind == _UNIT else found).setdefault(event.source, {}).setdefault(kind, event.event_id)
    # A program that trains may scale its batches later, on the device or in the model.
    trains = {series.source for series in events.all_metrics("loss")}
    for event in events.named("preparation.input_range", kind="log"):
        kind = _seen(event) if event.source not in trains else None
        if kind is not None:
            (unit if kind == _UNIT else found).setdefault(event.source, {}).setdefault(kind, event.event_id)
    # Division by 255 is only the first half where a mean is subtracted afterwards.
    return {**unit, **found}


def _factor(event: Event) -> float | None:
    """Return a factor that is written as a number or as a fraction (`1./255`, as Keras generators take it)."""
    parts = _FRACTION.fullmatch(event.text.strip())
    if parts is None:
        return event.value
    return float(parts[1]) / float(parts[2]) if float(parts[2]) else None


def _seen(event: Event) -> str | None:
    """Return the scaling that the smallest and largest value of a float batch show; None for anything else.

    Pixels are told by their bounds: a byte, the unit range, or -1 to 1. What was divided by a deviation has none.
    """
    low, high = event.attr("low", event.attr("from")), event.attr("high", event.attr("to"))
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
        return None
    if low >= 0:
        return _RAW if _BRIGHT < high <= _BYTE else _UNIT if 0 < high <= 1 else None
    return _CENTRED if -1 <= low <= -_DARK and high <= 1 else None


def _by_mean(texts: list[str]) -> str | None:
    values = [float(text) for text in texts[:3]]
    if not values:
        return None
    first = values[0]
    if all(value in {0.5, 127.5} for value in values):
        return _CENTRED
    if abs(first - 0.485) < 0.01 or abs(first - 123.675) < 1.0:
        return _IMAGENET
    if abs(first - 103.939) < 1.0 or abs(first - 104) < 1.5:
        return _CAFFE
    return _UNIT if all(value == 0 for value in values) else None


def _by_range(text: str) -> str | None:
    ends = [float(item) for item in _NUMBER.findall(text)[:2]]
    known = {(-1.0, 1.0): _CENTRED, (0.0, 1.0): _UNIT, (0.0, 255.0): _RAW}
    return known.get((ends[0], ends[1])) if len(ends) == 2 else None


def _told(event: Event) -> str | None:
    option, mean, pixel_range = event.attr("option"), event.attr("mean"), event.attr("range")
    if option is not None:
        return _OPTIONS.get(str(option).upper())
    if mean is not None:
        return _by_mean(_NUMBER.findall(str(mean)))
    if pixel_range is not None:
        return _by_range(str(pixel_range))
    divide = str(event.attr("divide") or "")
    return _CENTRED if "127.5" in divide else _UNIT if "255" in divide else None


def _order(events: EventTable) -> _Said:
    found: _Said = {}
    for event in events.of_kind("config"):
        if _ORDER.search(str(event.attr("key", event.name))) and event.text.lower() in {"rgb", "bgr"}:
            found.setdefault(event.source, {}).setdefault(event.text.upper(), event.event_id)
    return found


def case(events: EventTable) -> Iterator[Fact]:
    """Is text lower-cased everywhere or nowhere, and as the vocabulary was made?"""
    said: _Said = {}
    named: _Said = {}
    for event in events.of_kind("config"):
        key = str(event.attr("key", event.name)).lower().rsplit(".", 1)[-1]
        value: Any = event.attr("value")
        if key in _CASE_KEYS and isinstance(value, bool):
            said.setdefault(event.source, {}).setdefault("lower-cased" if value else "as written", event.event_id)
        elif key in {
            "_name_or_path",
            "name_or_path",
            "model_name_or_path",
            "model",
            "base_model",
            "tokenizer",
            "model_name",
        }:
            match = _CASED.search(event.text)
            if match is not None:
                kind = "lower-cased" if match["un"] else "as written"
                named.setdefault(f"the name {event.text[-60:]}", {}).setdefault(kind, event.event_id)
    clash = _clash(said) or (_clash({**said, **named}) if said else None)
    if clash is not None:
        (one, first, event_id), (other, second, other_id) = clash
        words = f"text is {first} by {one} and {second} by {other}"
        yield from emit("tokenizer.case_conflict", words, f"{words.capitalize()}.", events=[event_id, other_id])


def template(events: EventTable) -> Iterator[Fact]:
    """Do all files mean the same family of chat templates?"""
    said: _Said = {}
    for event in events.of_kind("config"):
        key = str(event.attr("key", event.name)).lower().rsplit(".", 1)[-1]
        family = next((name for name, pattern in _FAMILIES if pattern.search(event.text)), None)
        if key in _TEMPLATE_KEYS and family is not None:
            said.setdefault(event.source, {}).setdefault(family, event.event_id)
    for event in events.named("prompt.rendered", kind="log"):
        family = next((name for name, pattern in _FAMILIES if pattern.search(str(event.attr("marker")))), None)
        if family is not None:
            said.setdefault(event.source, {}).setdefault(family, event.event_id)
    clash = _clash(said)
    if clash is not None:
        (one, first, event_id), (other, second, other_id) = clash
        words = f"{one} uses the template of {first}, {other} that of {second}"
        yield from emit("tokenizer.template_conflict", words, f"{words}.", events=[event_id, other_id])


def _clash(said: _Said) -> tuple[tuple[str, str, int], tuple[str, str, int]] | None:
    """Return two sources that have nothing in common, each with what it says."""
    sources = sorted(said)
    for place, one in enumerate(sources):
        for other in sources[place + 1 :]:
            if not said[one].keys() & said[other].keys():
                first, second = next(iter(said[one].items())), next(iter(said[other].items()))
                return (one, *first), (other, *second)
    return None


FACTS: tuple[FactFunction, ...] = (pixels, case, template)

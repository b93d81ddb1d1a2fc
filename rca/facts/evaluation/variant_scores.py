"""Scores of one model in several number formats: every quantised one beside the widest format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rca.events import Event, EventTable

_WIDE = ("fp32", "float32", "bf16", "bfloat16", "fp16", "float16")
"""Formats that count as the original, the widest first."""


_COMPRESSED = re.compile(
    r"(?<![a-z0-9])(?:int[2-8]|fp8|fp4|nf4|mxfp4|nvfp4|w[2-8]a(?:4|8|16)|awq|gptq|rtn|hqq|aqlm|quip\w*|spqr|exl[23]|"
    r"q[2-8]_\w+|iq[1-4]_\w+|[2-8]-?bits?|load_in_[48]bit=true)(?![a-z0-9])",
    re.I,
)


class VariantPair(NamedTuple):
    """The score of the widest format and that of a quantised one."""

    metric: str
    reference: float
    candidate: float
    events: tuple[int, int]


def variant_pairs(events: EventTable) -> Iterator[VariantPair]:
    """Return the pairs of each metric, every variant by its last score."""
    scores: dict[str, dict[str, Event]] = {}
    for event in events.named("quality.variant_score", kind="log"):
        variant, metric = str(event.attr("variant") or "").lower(), str(event.attr("metric") or "").lower()
        if variant and isinstance(event.attr("value"), (int, float)):
            scores.setdefault(metric, {})[variant] = event
    for metric, found in sorted(scores.items()):
        base = next((found[name] for name in _WIDE if name in found), None)
        for variant, event in found.items():
            if base is not None and variant not in _WIDE:
                ids = (base.event_id, event.event_id)
                yield VariantPair(metric, float(base.attr("value")), float(event.attr("value")), ids)
    yield from _by_model(events)


def _by_model(events: EventTable) -> Iterator[VariantPair]:
    """Return the scores that tables below the names of two models hold: the one that is named quantised and the other.

    Only shares are compared: for anything else a table does not tell which direction is better.
    """
    named = sorted((event.source, event.line or 0, event) for event in events.named("eval.model", kind="log"))
    scores: dict[bool, dict[tuple[str, str], Event]] = {True: {}, False: {}}
    names = [name for name in events.metric_names if name.startswith("score.") and named]
    series = (series for name in names for series in events.all_metrics(name))
    for event in (events.get(int(event_id)) for item in series for event_id in item.event_id):
        above = [model for source, line, model in named if source == event.source and line <= (event.line or 0)]
        label = str(event.attr("label") or "").strip()
        if above and label and event.value is not None and 0 < event.value <= 1:
            compressed = _COMPRESSED.search(str(above[-1].attr("model"))) is not None
            scores[compressed].setdefault((event.name, label), event)
    for (metric, label), event in scores[True].items():
        base = scores[False].get((metric, label))
        if base is not None and base.value is not None and event.value is not None:
            name = f"{label} {metric.removeprefix('score.')}"
            yield VariantPair(name, base.value, event.value, (base.event_id, event.event_id))

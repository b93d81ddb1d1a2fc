"""Scores of one model in several number formats: every quantised one beside the widest format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rca.events import Event, EventTable

_WIDE = ("fp32", "float32", "bf16", "bfloat16", "fp16", "float16")
"""Formats that count as the original, the widest first."""


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

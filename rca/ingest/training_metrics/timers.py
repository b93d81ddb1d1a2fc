"""Timers of one step in a row: `time (ms) | fwd_microstep: 360.58 | bwd_allreduce_microstep: 6895.56 | ...`.

DeepSpeed (`wall_clock_breakdown`) and Megatron before 2022 print them so.
"""

from __future__ import annotations

import re

from rca.ingest.training_metrics.pairs import Pair

TRIGGERS = (r"\btime \(ms\) \| ?\w",)
_HEAD = re.compile(r"\btime \(ms\) \|")
_TIMER = re.compile(
    r"\|\s{0,4}(?P<name>[A-Za-z][\w.\-/ ]{0,60}?)\s{0,40}: (?P<value>\d{1,9}(?:\.\d{1,6})?)(?=\s{0,4}(?:\||$))"
)
_MOST = 2000


def timers(message: str) -> list[Pair]:
    """Return the timers of a line in seconds, each as `timer.<name>`."""
    head = _HEAD.search(message[:_MOST])
    if head is None:
        return []
    return [
        Pair(f"timer.{item['name'].lower().replace(' ', '_')}", float(item["value"]) / 1e3, "s", known=True)
        for item in _TIMER.finditer(message[head.end() - 1 : _MOST])
    ]

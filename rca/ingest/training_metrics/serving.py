"""Throughput, queue and cache figures that inference servers print every few seconds or for every request."""

from __future__ import annotations

import re

from rca.ingest.training_metrics.pairs import Pair

TRIGGERS = (
    r"generation throughput: [\d.]",
    r"gen throughput \(token/s\): [\d.]",
    r"ms per token, +[\d.]+ tokens per second",
    r"time_per_token=\S*\d",
)
"""Patterns of lines that may hold such figures."""

_FIGURES = (
    ("prompt_throughput", "tokens/s", 1.0, re.compile(r"[Pp]rompt throughput: (\d{1,12}\.?\d{0,6}) tokens/s")),
    ("throughput", "tokens/s", 1.0, re.compile(r"generation throughput: (\d{1,12}\.?\d{0,6}) tokens/s")),
    ("throughput", "tokens/s", 1.0, re.compile(r"gen throughput \(token/s\): (\d{1,12}\.?\d{0,6})")),
    (
        "throughput",
        "tokens/s",
        1.0,
        re.compile(r"eval time .{0,80}?ms per token, {1,12}(\d{1,12}\.?\d{0,6}) tokens per second"),
    ),
    ("requests_running", None, 1.0, re.compile(r"[Rr]unning(?:-req)?: (\d{1,9})")),
    ("requests_waiting", None, 1.0, re.compile(r"(?:Waiting|Pending|#queue-req): (\d{1,9})")),
    ("kv_cache_usage", "%", 1.0, re.compile(r"(?:GPU )?KV cache usage: (\d{1,3}\.?\d{0,6})%")),
    ("kv_cache_usage", "%", 100.0, re.compile(r"token usage: (\d{1,3}\.?\d{0,6})")),
    ("prefix_cache_hit_rate", "%", 1.0, re.compile(r"[Pp]refix cache hit rate: (?:GPU: )?(\d{1,3}\.?\d{0,6})%")),
)
_REQUEST = re.compile(
    r"\b(total|validation|queue|inference)_time=\"?(\d{1,9}\.?\d{0,12})(µs|ms|s)\"?|\btime_per_token=\"?(\d{1,9}\.?\d{0,12})(µs|ms|s)"
)
_SECONDS = {"µs": 1e-6, "ms": 1e-3, "s": 1.0}
_MOST = 2000


def serving(message: str) -> list[Pair]:
    """Return the figures of one line; times in seconds, shares in percent."""
    text = message[:_MOST]
    found: dict[str, Pair] = {}
    if "throughput" in text or "tokens per second" in text:
        for name, unit, scale, pattern in _FIGURES:
            figure = pattern.search(text)
            if figure and name not in found and not (scale == 1.0 and text.startswith("prompt eval")):
                found[name] = Pair(name, float(figure[1]) * scale, unit, True)
    elif "time_per_token" in text:
        for item in _REQUEST.finditer(text):
            name = f"{item[1]}_time" if item[1] else "time_per_token"
            raw, unit = (item[2], item[3]) if item[1] else (item[4], item[5])
            found[name] = Pair(name, float(raw) * _SECONDS[unit], "s", True)
    return list(found.values())

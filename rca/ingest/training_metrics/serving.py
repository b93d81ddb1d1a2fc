"""Speed, queue and cache figures of SGLang's batches and text-generation-inference's requests.

Names are those of the other servers' lines: `generation_throughput` in tokens a second, `ms_per_token`, `latency_s`,
`kv_cache_usage` as a share of one.
"""

from __future__ import annotations

import re

from rca.ingest.training_metrics.pairs import Pair

TRIGGERS = (r"throughput \(token/s\): [\d.]", r"time_per_token=\S*\d")
"""Patterns of lines that may hold such figures."""

_NUMBER = r"(\d{1,12}\.?\d{0,12})"
_BATCH = (
    ("generation_throughput", "tokens/s", re.compile(r"gen throughput \(token/s\): " + _NUMBER)),
    ("prompt_throughput", "tokens/s", re.compile(r"input throughput \(token/s\): " + _NUMBER)),
    ("requests_running", None, re.compile(r"#running-req: " + _NUMBER)),
    ("requests_waiting", None, re.compile(r"#queue-req: " + _NUMBER)),
    ("kv_cache_usage", None, re.compile(r"token usage: " + _NUMBER)),
)
_REQUEST = (
    ("ms_per_token", "ms", 1e3, re.compile(r"\btime_per_token=\"?" + _NUMBER + r"(ns|µs|ms|s)\b")),
    ("latency_s", "s", 1.0, re.compile(r"\btotal_time=\"?" + _NUMBER + r"(ns|µs|ms|s)\b")),
    ("queue_s", "s", 1.0, re.compile(r"\bqueue_time=\"?" + _NUMBER + r"(ns|µs|ms|s)\b")),
)
_SECONDS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_MOST = 2000


def serving(message: str) -> list[Pair]:
    """Return the figures of one line, none where it holds none."""
    text = message[:_MOST]
    found: list[Pair] = []
    if "throughput (token/s)" in text:
        for name, unit, pattern in _BATCH:
            figure = pattern.search(text)
            if figure:
                found.append(Pair(name, float(figure[1]), unit, True))
    elif "time_per_token" in text:
        for name, unit, scale, pattern in _REQUEST:
            figure = pattern.search(text)
            if figure:
                found.append(Pair(name, float(figure[1]) * _SECONDS[figure[2]] * scale, unit, True))
    return found

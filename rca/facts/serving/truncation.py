"""Inputs that a server cut without a word: lengths as they were sent against lengths as they were read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.metric_series import MetricSeries

CATALOGUE: Mapping[str, str] = {
    "requests.truncated_share": "share of the requests of which the server read fewer tokens than were sent",
    "requests.truncated_to": "most tokens that the server read of one request",
    "requests.longest_sent": "most tokens that were sent in one request",
    "requests.at_limit_share": "share of the requests whose input has exactly the length of the longest one",
}
_INPUT = re.compile(r"(?:prompt|input|context|history|messages?|source|src)", re.I)
_TOKENS = re.compile(r"tok(?:en)?s?(?:_|\b)|_len(?:gth)?\b|_count\b|^n_", re.I)
_OUTPUT = re.compile(r"(?:completion|output|generated|new|gen)_?tok|_ms$|_s$|per_tok", re.I)
_EQUAL, _CUT = 0.03, 0.05
"""Two tokenizers' counts of one text, or a template's tokens more or less, differ by a few percent."""
_FEWEST = 8
_SHORTEST = 256
"""Below this an input of the greatest length may well be a fixed template."""


def truncated(events: EventTable) -> Iterator[Fact]:
    """Were long inputs cut to what fits, while short ones arrived whole?"""
    by_source: dict[str, list[MetricSeries]] = {}
    for name in events.metric_names:
        plain = name.rsplit(".", 1)[-1]
        if _INPUT.search(plain) and _TOKENS.search(plain) and not _OUTPUT.search(plain):
            for series in events.all_metrics(name):
                by_source.setdefault(series.source, []).append(series)
    found = [pair for told in by_source.values() if (pair := _cut_pair(told)) is not None]
    if found:
        share, sent, kept = max(found, key=lambda one: one[0])
        limit, longest = float(kept.value.max()), float(sent.value.max())
        says = f"Of {percent(share)} of {len(sent)} requests fewer tokens were read ({kept.name}) than sent"
        says += f" ({sent.name}): up to {number(longest)} were sent and never more than {number(limit)} read."
        shown = kept.event_id[np.argsort(kept.value - sent.value)[:3]]
        yield from emit("requests.truncated_share", round(share, 4), says, events=shown)
        yield from emit("requests.truncated_to", limit, says, unit="tokens", events=shown)
        yield from emit("requests.longest_sent", longest, says, unit="tokens", events=shown)
    yield from _at_limit([series for told in by_source.values() for series in told])


def _cut_pair(told: Sequence[MetricSeries]) -> tuple[float, MetricSeries, MetricSeries] | None:
    """Return (share of cut requests, sent, read) where two columns agree below a limit and part above it."""
    for sent in told:
        for kept in told:
            if sent is kept or len(sent) != len(kept) or len(sent) < _FEWEST:
                continue
            limit = float(kept.value.max())
            cut = kept.value < (1 - _CUT) * sent.value
            below = sent.value <= 0.9 * limit
            whole = np.abs(kept.value - sent.value) <= np.maximum(_EQUAL * sent.value, 8)
            if cut.any() and below.sum() >= 3 and whole[below].all() and cut[sent.value > (1 + _CUT) * limit].all():
                return float(np.mean(cut)), sent, kept
    return None


def _at_limit(told: Sequence[MetricSeries]) -> Iterator[Fact]:
    """Do many inputs have the very same length, which none exceeds?"""
    series = max(told, key=len, default=None)
    if series is None or len(series) < _FEWEST:
        return
    top = float(series.value.max())
    share = float(np.mean(series.value == top))
    if top >= _SHORTEST and len(np.unique(series.value)) >= 3:
        says = f"{percent(share)} of {len(series)} inputs have exactly {number(top)} tokens, none has more."
        yield from emit(
            "requests.at_limit_share", round(share, 4), says, events=series.event_id[series.value == top][:3]
        )


FACTS: tuple[FactFunction, ...] = (truncated,)

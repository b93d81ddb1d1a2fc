"""Scores of one thing over days, builds or versions: did they fall at once, which of them, and with which change?"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rca.events import Event, EventTable
from rca.facts.emit import emit, number
from rca.facts.interface import Fact, FactFunction
from rca.metric_series import MetricSeries

CATALOGUE: Mapping[str, str] = {
    "quality.drop": "share of a score that was lost from one row of a history to the next and did not come back",
    "quality.drop_partial": "other scores of the same history stayed within 2 % when that one fell",
    "quality.drop_with": "what changed in the row in which the score fell, in words",
    "quality.drop_metric": "the score that fell most",
}
_LOWER = re.compile(r"(?:^|[^a-z])(?:ppl|perplexity|wer|cer|eer|mae|rmse|mse|error|fid)(?:[^a-z]|$)", re.I)
_NO_SCORE = re.compile(
    r"(?:^|[._/-])(?:loss|lr|learning_rate|ms|s|sec|seconds|time|gib|gb|mib|mb|count|n|samples|queries|docs|requests|"
    r"tokens|rows|size|epoch|step|gpu\w*|mem\w*|temp\w*|power|throughput|qps|rps|latency|p\d\d|seed|id|tok_s|batch|usage|util\w*|share|ratio|fraction|cache|rate|load|prob\w*|weight\w*|norm|entropy|kl)"
    r"(?:[._/-]|$)|per_s|/s",
    re.I,
)
_VERSION = re.compile(
    r"version|build|release|revision|commit|date|day|tag|image|sha|^run$|engine|vllm|torch|driver", re.I
)
_TABLES = (".csv", ".tsv", ".jsonl", ".json", ".parquet")
"""Files in which a column between 0 and 1 is a score although its name does not say so."""
_FEWEST = 3
_STEADY = 0.02
FELL = 0.1


class _Drop(NamedTuple):
    lost: float
    metric: str
    before: float
    after: float
    event: Event
    previous: Event


def drops(events: EventTable) -> Iterator[Fact]:
    """Which score fell from one row to the next, and stayed there?"""
    found: list[_Drop] = []
    steady: dict[str, list[str]] = {}
    for name in events.metric_names:
        for series in events.all_metrics(name):
            if np.isfinite(series.step).any() or not _FEWEST <= len(series) <= 400 or not _scores(name, series):
                continue
            if not _in_time(series, events):
                continue
            for told in _falls(name, series, events):
                if told.lost >= FELL:
                    found.append(told)
                elif abs(told.lost) <= _STEADY:
                    steady.setdefault(series.source, []).append(name)
    if not found:
        return
    worst = max(found, key=lambda one: one.lost)
    says = f"{worst.metric} went from {number(worst.before)} to {number(worst.after)} and stayed there"
    shown = [worst.previous.event_id, worst.event.event_id]
    changed = _changes(worst)
    says = says + (f", when {changed}." if changed else ".")
    yield from emit("quality.drop", round(worst.lost, 4), says, events=shown)
    yield from emit("quality.drop_metric", worst.metric, says, events=shown)
    if changed:
        yield from emit("quality.drop_with", changed, says, events=shown)
    rest = steady.get(worst.event.source, [])
    others = (
        f"{', '.join(dict.fromkeys(rest[:4]))} stayed as they were elsewhere."
        if rest
        else "No score of that history stayed as it was."
    )
    yield from emit("quality.drop_partial", bool(rest), f"{says} {others}", events=shown)


def _in_time(series: MetricSeries, events: EventTable) -> bool:
    """Say whether the rows follow one another in time or versions; those of a sweep do not."""
    rows = [events.get(int(event)) for event in series.event_id]
    times = [event.time for event in rows]
    dated = all(time is not None for time in times) and len(set(times)) > 1
    return dated or any(_VERSION.search(key) for event in rows for key in (event.attrs or {}))


def _scores(name: str, series: MetricSeries) -> bool:
    if _NO_SCORE.search(name) or name.startswith("summary."):
        return False
    values = series.value
    good = bool(np.isfinite(values).all() and (values >= 0).all() and len(np.unique(values)) > 1)
    if _LOWER.search(name) or (_named(name) and (values <= 100).all()):
        return good
    return good and series.source.endswith(_TABLES) and bool((values <= 1).all())


def _named(name: str) -> bool:
    return bool(
        re.search(r"acc|f1|map|iou|auc|bleu|rouge|recall|precision|top-?\d|score|match|pass|ndcg|mrr|em\b", name, re.I)
    )


def _falls(name: str, series: MetricSeries, events: EventTable) -> list[_Drop]:
    """Return the clearest change of each group of rows: the rows before and after it are level."""
    rows = [(float(value), events.get(int(event))) for value, event in zip(series.value, series.event_id, strict=True)]
    return [one for group in _groups(rows) if (one := _fall(name, group)) is not None]


def _groups(rows: list[tuple[float, Event]]) -> Iterator[list[tuple[float, Event]]]:
    """Yield one history for each model or data set that the labels name in turn; a label that changes once does not."""
    keys = {key for _value, event in rows for key in (event.attrs or {}) if not _VERSION.search(key)}
    interleaved = sorted(key for key in keys if _alternates([(event.attrs or {}).get(key) for _value, event in rows]))
    split: dict[str, list[tuple[float, Event]]] = {}
    for value, event in rows:
        label = " ".join(f"{key}={(event.attrs or {}).get(key)}" for key in interleaved)
        split.setdefault(label, []).append((value, event))
    yield from split.values()


def _alternates(labels: Sequence[Any]) -> bool:
    changes = sum(one != other for one, other in itertools.pairwise(labels))
    return bool(changes >= len(set(labels)))


def _fall(name: str, rows: list[tuple[float, Event]]) -> _Drop | None:
    if len(rows) < _FEWEST or len({event.line for _value, event in rows}) < _FEWEST:
        return None
    values = np.array([value for value, _event in rows])
    best: tuple[float, int] | None = None
    for place in range(max(1, len(values) // 5), len(values)):
        before, after = float(np.median(values[:place])), float(np.median(values[place:]))
        good, bad = (after, before) if _LOWER.search(name) else (before, after)
        spread = float(np.ptp(values[:place])) if place < 4 else 2 * float(np.std(values[:place]))
        if place >= 2 and good > 0 and spread <= 0.3 * max(abs(before - after), _STEADY * abs(before)):
            later = 2 * float(np.std(values[place:]))
            if later <= 0.5 * max(abs(before - after), _STEADY * abs(before)):
                lost = 1 - bad / good
                if best is None or abs(lost) > abs(best[0]) + 1e-9:
                    best = (lost, place)
    if best is None:
        return None
    lost, place = best
    before, after = float(np.median(values[:place])), float(np.median(values[place:]))
    lost = 1 - (after / before if not _LOWER.search(name) else before / after)
    return _Drop(lost, name, before, after, rows[place][1], rows[place - 1][1])


def _changes(drop: _Drop) -> str:
    old: Mapping[str, Any] = drop.previous.attrs or {}
    new: Mapping[str, Any] = drop.event.attrs or {}
    told = [
        f"{key} went from {old[key]} to {new[key]}" for key in sorted(old.keys() & new.keys()) if old[key] != new[key]
    ]
    return " and ".join(told[:3])


FACTS: tuple[FactFunction, ...] = (drops,)

"""The same input given more than once: a model in evaluation mode answers it with the same numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.serving.request_log import group_of
from rca.metric_series import MetricSeries

CATALOGUE: Mapping[str, str] = {
    "outputs.repeat_spread": "median spread of an output between repetitions of one input, over its mean",
    "outputs.repeat_inputs": "number of inputs that were given more than once",
    "outputs.repeat_difference": "largest difference that was printed between two passes over the same inputs",
    "outputs.batch_dependence": "rank correlation of the output with the batch size, between repetitions of one input",
}
_IDENTITY = re.compile(
    r"(?:^|[._-])(?:image|img|sample|input|prompt|query|file|clip|utt(?:erance)?|doc|text|item|example|case|hash|sha\d*|md5)"
    r"(?:$|[._-](?:id|sha\d*|hash|md5|name|path|file)$)",
    re.I,
)
_OUTPUT = re.compile(
    r"(?:^|[._/-])(?:score|prob(?:ability)?|conf(?:idence)?|logit|pred(?:iction)?|output|iou|dice|acc(?:uracy)?|f1|wer|cer|"
    r"mean|area|psnr|loss|distance|similarity|embedding)(?:$|[._/-])",
    re.I,
)
_BATCH = ("batch", "batch_size", "bs", "n")
_REPEATS = 3
"""Repetitions of one input before its spread counts."""


def repeats(events: EventTable) -> Iterator[Fact]:
    """How far apart are the outputs for one input?"""
    told = [found for name in events.metric_names if _OUTPUT.search(name) for series in events.all_metrics(name)
            if (found := _spread(series, events)) is not None] + _listed(events)  # fmt: skip
    if not told:
        return
    spread, inputs, name, shown = max(told, key=lambda item: (item[1], item[0]))
    says = f"{inputs} inputs were given several times; {name} spreads by {percent(spread)} for one of them."
    yield from emit("outputs.repeat_spread", round(spread, 6), says, events=shown)
    yield from emit("outputs.repeat_inputs", inputs, says, events=shown)
    yield from _by_batch(events, name)


def _groups(series: MetricSeries, events: EventTable) -> dict[str, list[tuple[float, int, int | None]]]:
    """Return (value, event, line) of each input, by the label that identifies it."""
    groups: dict[str, list[tuple[float, int, int | None]]] = {}
    if len(np.unique(series.step[np.isfinite(series.step)])) > 1:
        return groups  # a curve of training: the model itself changed in between
    for value, event_id in zip(series.value, series.event_id, strict=True):
        event = events.get(int(event_id))
        labels = sorted((event.attrs or {}).items())
        if np.isfinite(value) and any(_IDENTITY.search(name) for name, _label in labels):
            key = " ".join(f"{name}={label}" for name, label in labels)
            groups.setdefault(key, []).append((float(value), int(event_id), event.line))
    return {key: rows for key, rows in groups.items() if len(rows) >= _REPEATS}


def _listed(events: EventTable) -> list[tuple[float, int, str, list[int]]]:
    """Return (spread, inputs, name, events) of each model whose repetitions stand as lists in one record an input."""
    groups: dict[str, list[tuple[float, int]]] = {}
    for series in events.all_metrics("output_repeat_spread"):
        for value, event_id in zip(series.value, series.event_id, strict=True):
            label = group_of(events.get(int(event_id)).attrs or {}) or series.source
            groups.setdefault(label, []).append((float(value), int(event_id)))
    found = [
        (float(np.median([value for value, _event in rows])), len(rows), f"the output of {label}", rows)
        for label, rows in sorted(groups.items())
    ]
    # One number of all groups would hide the model that differs behind one that does not.
    return [
        (spread, inputs, name, [event for _value, event in rows[:3]])
        for spread, inputs, name, rows in sorted(found, reverse=True)[:1]
    ]


def _spread(series: MetricSeries, events: EventTable) -> tuple[float, int, str, list[int]] | None:
    groups = _groups(series, events)
    spreads = [(float(np.std(values) / abs(np.mean(values))), rows)
               for rows in groups.values() if np.mean(values := [row[0] for row in rows]) != 0]  # fmt: skip
    if not spreads:
        return None
    shown = max(spreads, key=lambda item: item[0])[1]
    return float(np.median([one for one, _rows in spreads])), len(spreads), series.name, [row[1] for row in shown[:3]]


def _by_batch(events: EventTable, name: str) -> Iterator[Fact]:
    """Does the output of one input depend on how many others share its batch?"""
    for series in events.all_metrics(name):
        sizes = next(
            (one for other in _BATCH for one in events.all_metrics(other) if one.source == series.source), None
        )
        if sizes is None:
            continue
        size_at = {events.get(int(event)).line: float(value)
                   for value, event in zip(sizes.value, sizes.event_id, strict=True)}  # fmt: skip
        ranks: list[tuple[float, float]] = []
        for rows in _groups(series, events).values():
            pairs = [(size_at[line], value) for value, _event, line in rows if line in size_at]
            if len(pairs) >= _REPEATS and len({size for size, _value in pairs}) > 1:
                level = float(np.mean([value for _size, value in pairs]))
                ranks.extend((size, value - level) for size, value in pairs)
        if len(ranks) >= 2 * _REPEATS:
            from scipy.stats import spearmanr

            correlation = float(spearmanr([pair[0] for pair in ranks], [pair[1] for pair in ranks]).statistic)
            says = f"For one and the same input, {name} goes with the batch size (rank correlation {correlation:.2f})."
            yield from emit("outputs.batch_dependence", correlation, says, events=series.event_id[:2])
            return


def passes(events: EventTable) -> Iterator[Fact]:
    """How far apart are two passes over the same inputs, where a program printed it?"""
    told = [
        (float(value), event.event_id)
        for event in events.named("outputs.repeat_difference", kind="log")
        if isinstance(value := event.attr("value"), (int, float))
    ]
    if told:
        value, event_id = max(told)
        says = f"Two passes over the same inputs differ by {number(value)}."
        yield from emit("outputs.repeat_difference", value, says, events=[event_id])


FACTS: tuple[FactFunction, ...] = (repeats, passes)

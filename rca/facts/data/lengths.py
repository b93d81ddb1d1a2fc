"""Sequence lengths, padding and label masks of the data, from logs, samples and batch dumps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.metric_series import MetricSeries

CATALOGUE: Mapping[str, str] = {
    "lengths.median": "median sequence length (tokens)",
    "lengths.max": "longest sequence (tokens)",
    "lengths.max_over_median": "longest over median sequence (x)",
    "lengths.p95_over_median": "95th percentile over median sequence length (x)",
    "lengths.padding_share": "share of the computed tokens that are padding",
    "lengths.over_limit": "longest sequence over the length limit of the configuration (x)",
    "labels.ignored_share": "share of label positions that the loss ignores",
    "labels.all_ignored": "samples whose labels are all ignored",
    "labels.offset": "places by which labels run ahead of inputs: 0 as transformers wants them, 1 shifted",
    "targets.offset": "places by which the targets of a loop of its own run ahead of inputs: 1 as the loss wants them",
    "labels.max": "highest label id",
    "tokens.max_id": "highest token id in samples or batches",
}
_LENGTHS = ("sequence_length", "length", "seq_lengths", "num_tokens", "n_tokens", "input_length", "prompt_tokens")
"""Names of lengths, the surest first."""
_PADDING = ("padding_share", "padding_ratio", "pad_ratio", "pad_frac", "padding", "pad_share", "padding_fraction")
_PADDED = ("padded_length", "padded_len", "batch_max_length", "max_len")
_LIMITS = ("max_model_len", "seq_length", "max_position_embeddings")
_FEWEST = 8


def lengths(events: EventTable) -> Iterator[Fact]:
    """How unequal are the sequences, and do they exceed the limit?"""
    series = next((found for name in _LENGTHS if (found := events.metric(name)) is not None), None)
    if series is None:
        return
    values = series.value[np.isfinite(series.value) & (series.value > 0)]
    if len(values) < _FEWEST:
        return
    middle, late, top = (float(value) for value in np.percentile(values, [50, 95, 100]))
    longest = series.event_id[[int(np.nanargmax(series.value))]]
    says = f"The median of {len(values)} sequences has {number(middle)} tokens, the longest {number(top)}."
    yield from emit("lengths.median", middle, says, unit="tokens", events=longest)
    yield from emit("lengths.max", top, says, unit="tokens", events=longest)
    yield from emit("lengths.max_over_median", round(top / middle, 3), says, events=longest)
    says = f"One sequence in twenty has more than {number(late)} tokens, the median {number(middle)}."
    yield from emit("lengths.p95_over_median", round(late / middle, 3), says, events=longest)
    limit = next((setting for name in _LIMITS if (setting := events.config(name)) is not None), None)
    if limit is not None and limit.value is not None and 0 < limit.value < 1e9:
        says = f"The longest sequence has {number(top)} tokens, {limit.attr('key', limit.name)} is {limit.text}."
        shown = [*longest, limit.event_id]
        yield from emit("lengths.over_limit", round(top / limit.value, 3), says, events=shown)


def padding(events: EventTable) -> Iterator[Fact]:
    """How much of the computed tokens is padding?"""
    told = [series for name in _PADDING for series in events.all_metrics(name)]
    shares = [series for series in told if len(series) and np.nanmax(series.value) <= 1.0]
    if shares:
        series = max(shares, key=len)
        share = float(np.nanmean(series.value))
        says = f"{percent(share)} of the tokens in {len(series)} batches or samples are padding."
        yield from emit("lengths.padding_share", round(share, 4), says, events=series.event_id[:1])
        return
    batches: list[tuple[float, int]] = []
    for event in events.named("data.tokens_of_batch", kind="log"):
        used, every = number_of(event.attr("used")), number_of(event.attr("all"))
        if 0 < used <= every:
            batches.append((used / every, event.event_id))
    if batches:
        share = 1 - float(np.median([part for part, _event in batches]))
        says = f"{percent(share)} of the tokens of a batch are padding, in the median of {len(batches)} reports."
        shown = [event for _part, event in batches[:3]]
        yield from emit("lengths.padding_share", round(share, 4), says, events=shown)
        return
    actual = events.metric("sequence_length")
    padded = next((found for name in _PADDED if (found := events.metric(name)) is not None), None)
    if actual is not None and padded is not None and _same_rows(actual, padded):
        share = 1 - float(np.nansum(actual.value) / np.nansum(padded.value))
        says = f"{percent(share)} of the tokens up to the padded length are padding."
        if 0 <= share < 1:
            yield from emit("lengths.padding_share", round(share, 4), says, events=padded.event_id[:1])


def number_of(text: object) -> float:
    """Return a count as it is printed, with or without thousands separators; 0 where it is none."""
    plain = str(text or "").replace(",", "")
    return float(plain) if plain.isdigit() else 0.0


def _same_rows(one: MetricSeries, other: MetricSeries) -> bool:
    return one.source == other.source and len(one) == len(other) and float(np.nansum(other.value)) > 0


def labels(events: EventTable) -> Iterator[Fact]:
    """Which labels reach the loss, and how high do labels and tokens go?"""
    ignored = events.metric("labels_ignored_share")
    if ignored is not None and len(ignored):
        share = float(np.nanmean(ignored.value))
        says = f"The loss ignores {percent(share)} of the label positions."
        yield from emit("labels.ignored_share", round(share, 4), says, events=ignored.event_id[:1])
        whole = np.flatnonzero(ignored.value >= 1.0)
        says = f"In {len(whole)} of {len(ignored)} samples every label is ignored."
        yield from emit("labels.all_ignored", len(whole), says, events=ignored.event_id[whole[:3]])
    for fact, name in (("labels.offset", "labels_offset"), ("targets.offset", "targets_offset")):
        moved = events.metric(name)
        if moved is not None and len(moved):
            values, counts = np.unique(moved.value, return_counts=True)
            offset = int(values[int(np.argmax(counts))])
            many = f"{int(counts.max())} of {len(moved)} examples"
            told = f"In {many} the label of a place is the input {offset} places on."
            yield from emit(fact, offset, told, events=moved.event_id[:1])
    for fact, name, words in (
        ("labels.max", "labels_max", "label"),
        ("tokens.max_id", "sequence_max_id", "token id"),
    ):
        series = events.metric(name)
        if series is not None and len(series) and np.isfinite(series.value).any():
            place = int(np.nanargmax(series.value))
            top = int(series.value[place])
            yield from emit(fact, top, f"The highest {words} is {top:,}.", events=series.event_id[[place]])


FACTS: tuple[FactFunction, ...] = (lengths, padding, labels)

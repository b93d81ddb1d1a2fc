"""How texts were generated, as each request tells it: temperature, cut-off, and answers that all have one length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.serving.request_log import OUTPUT_NAMES
from rca.facts.serving.server_load import CONCURRENCY
from rca.facts.training.curves import config_number

CATALOGUE: Mapping[str, str] = {
    "generation.temperature": "temperature of most requests that sample (median), else the configured one",
    "generation.top_p": "top_p of most requests (median), else the configured one",
    "generation.one_length_share": "share of the generations that have exactly the most frequent length (tokens)",
    "generation.foreign_markers_share": "share of the answers with markers of another chat template than their prompt",
    "generation.turn_markers_share": "share of the generated texts that hold a marker of a chat turn",
}
_HOTTEST = 5.0
"""Above this a column called temperature is one of a device or a room."""
_FEWEST = 5
_SHORT = 64
"""Answers of fewer tokens may well have equal lengths (labels, yes or no)."""


def sampling(events: EventTable) -> Iterator[Fact]:
    """At which temperature and cut-off were texts sampled?"""
    for fact, name, least, top in (
        ("generation.temperature", "temperature", 0.0, _HOTTEST),
        ("generation.top_p", "top_p", 0.0, 1.0),
    ):
        values = [(float(value), int(event)) for series in events.all_metrics(name)
                  for value, event in zip(series.value, series.event_id, strict=True) if value > least]  # fmt: skip
        told = [value for value, _event in values]
        setting, configured = events.config(name), config_number(events, name)
        if told and max(told) <= top:
            middle = float(np.median(told))
            says = f"{len(told)} requests sample with a {name} of {number(middle)} in the median."
            yield from emit(fact, middle, says, events=[event for _value, event in values[:3]])
        elif setting is not None and configured is not None and not told:
            yield from emit(fact, configured, f"The {name} is {number(configured)}.", events=[setting.event_id])


def lengths(events: EventTable) -> Iterator[Fact]:
    """Do generations all end at one length, as only a limit makes them? Load tests ask for one length on purpose."""
    tested = {one.source for name in CONCURRENCY for one in events.all_metrics(name)}
    told = (one for name in OUTPUT_NAMES for one in events.all_metrics(name) if one.source not in tested)
    series = max(told, key=len, default=None)
    if series is None:
        return
    values = series.value[np.isfinite(series.value) & (series.value > 0)]
    if len(values) < _FEWEST:
        return
    sizes, counts = np.unique(values, return_counts=True)
    size, share = float(sizes[counts.argmax()]), float(counts.max() / len(values))
    if size >= _SHORT and size == float(values.max()):
        says = f"{percent(share)} of {len(values)} generations have exactly {number(size)} tokens, none has more."
        yield from emit("generation.one_length_share", share, says, events=series.event_id[:3])


def markers(events: EventTable) -> Iterator[Fact]:
    """Do generated texts hold markers of chat turns?"""
    found = events.all_metrics("output_turn_markers")
    values = np.concatenate([series.value for series in found]) if found else np.zeros(0)
    if len(values):
        share = float(np.mean(values > 0))
        says = f"{percent(share)} of {len(values)} generated texts hold a marker of a chat turn."
        shown = found[0].event_id[found[0].value > 0]
        yield from emit("generation.turn_markers_share", round(share, 4), says, events=shown)


def foreign(events: EventTable) -> Iterator[Fact]:
    """Do answers come in the markers of another chat template than the prompts?"""
    for series in events.all_metrics("output_foreign_markers"):
        share = float(np.mean(series.value > 0))
        says = f"{percent(share)} of {len(series)} answers hold markers of another chat template than their prompt has."
        shown = series.event_id[series.value > 0][:3]
        yield from emit("generation.foreign_markers_share", round(share, 4), says, events=shown)
        return


FACTS: tuple[FactFunction, ...] = (sampling, lengths, markers, foreign)

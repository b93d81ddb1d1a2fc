"""Losses that are added up to the one that is trained on: which of them is not finite."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit
from rca.facts.interface import Fact, FactFunction
from rca.facts.training.non_finite import far_below_zero

CATALOGUE: Mapping[str, str] = {
    "loss.nan_component": "a part of the loss that is not finite while another part stays finite",
    "loss.negative_part": "a part of the loss that is far below zero at single points while it is positive otherwise",
    "loss.parts_nan": "most parts of the loss are not finite from some point on, and the whole loss was not logged",
    "loss.parts_nan_at_start": "they are so from one of their first two points on",
}
_PART = re.compile(r"loss(?:$|_)|(?:^|_)(?:kl|nll|ce|bce|mse|recon)$")
_NOT_TRAINED = re.compile(r"^(?:eval|val|valid|validation|test|summary)[_./]|scale")
_FEWEST = 3
MOST = 0.6
"""Share of the parts: one that is computed from the data alone may stay finite when the model is lost."""


def parts(events: EventTable) -> Iterator[Fact]:
    """Which part of the loss is not finite?"""
    broken: list[tuple[float, str, int]] = []
    whole: list[str] = []
    lost: list[tuple[int, str, int]] = []
    negative: list[tuple[int, str, int]] = []
    seen = 0
    for name in events.metric_names:
        if name == "loss" or not _PART.search(name) or _NOT_TRAINED.search(name):
            continue
        series = max(events.all_metrics(name), key=len)
        bad = ~np.isfinite(series.value)
        if len(series) < _FEWEST:
            continue
        seen += 1
        if (below := np.flatnonzero(far_below_zero(series.value))).size:
            negative.append((len(below), name, int(series.event_id[below[0]])))
        if bad[-1] and bad[-_FEWEST:].all():
            first = len(bad) - int(np.argmin(bad[::-1])) if not bad.all() else 0
            lost.append((first, name, int(series.event_id[first])))
        if bad.mean() >= 0.5:
            broken.append((float(bad.mean()), name, int(series.event_id[int(np.flatnonzero(bad)[0])])))
        elif not bad.any():
            whole.append(name)
    if broken and whole:
        share, name, event = max(broken)
        says = f"{name} is not finite at {share:.0%} of its points while {whole[0]} stays finite."
        yield from emit("loss.nan_component", name, says, events=[event])
    if negative:
        times, name, event = max(negative)
        says = f"{name} lies far below zero at {times} points and is positive otherwise."
        yield from emit("loss.negative_part", name, says, events=[event])
    if len(lost) < max(2.0, MOST * seen) or "loss" in events.metric_names:
        return
    places = [first for first, _name, _event in lost]
    names = ", ".join(name for _first, name, _event in lost[:3])
    since = "all their points" if max(places) == 0 else f"all points after the first {max(places)}"
    says = f"{names} are not finite at {since}."
    shown = [event for _first, _name, event in lost]
    yield from emit("loss.parts_nan", True, says, events=shown)
    yield from emit("loss.parts_nan_at_start", max(places) < 2, says, events=shown)


FACTS: tuple[FactFunction, ...] = (parts,)

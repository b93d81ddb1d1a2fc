"""Losses that are added up to the one that is trained on: which of them is not finite."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "loss.nan_component": "a part of the loss that is not finite while another part stays finite",
}
_PART = re.compile(r"loss(?:$|_)|(?:^|_)(?:kl|nll|ce|bce|mse|recon)$")
_NOT_TRAINED = re.compile(r"^(?:eval|val|valid|validation|test|summary)[_./]|scale")
_FEWEST = 3


def parts(events: EventTable) -> Iterator[Fact]:
    """Which part of the loss is not finite?"""
    broken: list[tuple[float, str, int]] = []
    whole: list[str] = []
    for name in events.metric_names:
        if name == "loss" or not _PART.search(name) or _NOT_TRAINED.search(name):
            continue
        series = max(events.all_metrics(name), key=len)
        bad = ~np.isfinite(series.value)
        if len(series) < _FEWEST:
            continue
        if bad.mean() >= 0.5:
            broken.append((float(bad.mean()), name, int(series.event_id[int(np.flatnonzero(bad)[0])])))
        elif not bad.any():
            whole.append(name)
    if broken and whole:
        share, name, event = max(broken)
        says = f"{name} is not finite at {share:.0%} of its points while {whole[0]} stays finite."
        yield from emit("loss.nan_component", name, says, events=[event])


FACTS: tuple[FactFunction, ...] = (parts,)

"""Gradient norms of single layers: do they shrink on their way from the loss to the input?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "grad_norm.layers": "number of layers whose gradient norm was logged",
    "grad_norm.layer_ratio": "smallest over largest median gradient norm of a layer",
    "grad_norm.layers_vanish": "a layer's median norm is below a millionth of another's, the lower the smaller",
}

VANISHED = 1e-6
"""AutoTrainer flags vanishing gradients where the first layer's norm is below a thousandth of the last's and small by
itself (ICSE 2021); a millionth leaves room for layers of different width and for embeddings seen by few tokens."""
_FEWEST = 3
_NORM = re.compile(
    r"^(?:grad(?:ient)?s?(?:[._/]?norms?)?|gnorm|norm)[._/](?P<layer>.+)$|^(?P<named>.+)[._/]grad(?:_norm)?$"
)
_SMALL = re.compile(r"bias|norm|\bln|gamma|beta|embed", re.I)
"""Vectors and embeddings have norms of another size than the matrices beside them."""
_PLACE = re.compile(r"\d+")
_ORDERED = 0.7
"""Rank correlation of depth and norm from which the norm falls towards the input."""


def layers(events: EventTable) -> Iterator[Fact]:
    """Compare the layers by their median gradient norm."""
    medians: dict[str, tuple[float, int]] = {}
    for name in events.metric_names:
        match = _NORM.match(name)
        if match is None:
            continue
        for series in events.all_metrics(name):
            good = series.value[np.isfinite(series.value) & (series.value >= 0)]
            if len(good):
                medians[match["layer"] or match["named"]] = (float(np.median(good)), int(series.event_id[-1]))
    for name, values in _described(events).items():
        medians.setdefault(name, (float(np.median([value for value, _event in values])), values[-1][1]))
    if len(medians) < _FEWEST:
        return
    low, high = min(medians.values()), max(medians.values())
    if high[0] <= 0:
        return
    ratio = low[0] / high[0]
    says = f"The gradient norms of {len(medians)} layers lie between {number(low[0])} and {number(high[0])}."
    shown = [low[1], high[1]]
    yield from emit("grad_norm.layers", len(medians), says, events=shown)
    yield from emit("grad_norm.layer_ratio", ratio, says, events=shown)
    yield from emit("grad_norm.layers_vanish", 0 < ratio < VANISHED and _falls(medians), says, events=shown)


def _described(events: EventTable) -> dict[str, list[tuple[float, int]]]:
    """Return the norms of parameters that tables and logs describe one by one, biases and norms left out."""
    found: dict[str, list[tuple[float, int]]] = {}
    for event in events.named("model.parameter", kind="artifact"):
        value, name = event.attr("grad_norm"), str(event.attr("name"))
        if isinstance(value, (int, float)) and np.isfinite(value) and value >= 0 and not _SMALL.search(name):
            found.setdefault(name, []).append((float(value), event.event_id))
    return found


def _falls(medians: Mapping[str, tuple[float, int]]) -> bool:
    """Say whether layers nearer to the input (smaller numbers) have smaller norms."""
    numbered = [
        (int(place[0]), norm)
        for name, (norm, _event) in medians.items()
        if len(place := _PLACE.findall(name)[:1]) and len(place[0]) <= 6
    ]
    if len(numbered) < _FEWEST or len({norm for _place, norm in numbered}) < 2:
        return False
    depth, norms = (np.argsort(np.argsort([item[part] for item in numbered], kind="stable")) for part in (0, 1))
    return float(np.corrcoef(depth, norms)[0, 1]) >= _ORDERED


FACTS: tuple[FactFunction, ...] = (layers,)

"""Metrics over steps: one panel a quantity, all on one step axis, the failure and the evidence marked on each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from rca.report.chart_specs.theme import AXIS, FAILURE, GRID, MARK, SERIES, TEXT, WIDTH, framed
from rca.report.words import say

Points = Sequence[tuple[float, float]]
PANEL_HEIGHT = 96
LOG_FROM = 300.0
"""A panel of positive values gets a log axis when the largest is this many times the smallest."""


FEW = 24
"""A panel with so few points shows each of them: a point between gaps has no line."""


class Line(NamedTuple):
    """One curve of a panel."""

    label: str
    points: Points
    beside: int | None = None
    """Number of the line of the panel that this one is compared with: it takes its colour and is dashed."""


class Panel(NamedTuple):
    """One quantity with its unit."""

    title: str
    lines: tuple[Line, ...]
    log: bool = False
    zero: bool = False
    """Start the axis at zero: sizes, times and rates, whose ratios matter."""


def downsample(points: Points, buckets: int) -> list[tuple[float, float]]:
    """At most two finite points a bucket, its least and its greatest, in order; spikes survive.

    The first and last point and both ends of every run of NaN or of infinities are kept, so gaps keep their place; two
    gaps between which no finite point is kept become one.
    """
    if len(points) <= 2 * buckets:
        return list(points)
    width = len(points) / buckets
    kept: set[int] = {0, len(points) - 1}
    for bucket in range(buckets):
        span = range(int(bucket * width), min(int((bucket + 1) * width), len(points)))
        finite = [i for i in span if math.isfinite(points[i][1])]
        if finite:
            kept.add(min(finite, key=lambda i: points[i][1]))
            kept.add(max(finite, key=lambda i: points[i][1]))
    kinds = [None, *(_missing(value) for _, value in points), None]
    for index, kind in enumerate(kinds[1:-1]):
        if kind and not kinds[index] == kind == kinds[index + 2]:
            kept.add(index)
    return [points[index] for index in sorted(kept)]


def _missing(value: float) -> str | None:
    if math.isfinite(value):
        return None
    return "NaN" if math.isnan(value) else "Inf"


def gaps(points: Points) -> list[tuple[float, float, str]]:
    """Runs of values that are no numbers, as (first step, last step, what they are)."""
    found: list[tuple[float, float, str]] = []
    inside = False
    for step, value in points:
        name = _missing(value)
        if name is None:
            inside = False
            continue
        if inside and found[-1][2] == name:
            found[-1] = (found[-1][0], step, name)
        else:
            found.append((step, step, name))
        inside = True
    return found


def curves_spec(
    panels: Sequence[Panel],
    *,
    x_title: str,
    failure: float | None = None,
    evidence: Sequence[float] = (),
    buckets: int = 160,
) -> dict[str, Any]:
    """Panels below each other over one shared axis."""
    steps = [x for panel in panels for line in panel.lines for x, _ in line.points]
    low, high = min(steps), max(steps)
    if failure is not None:
        low, high = min(low, failure), max(high, failure)
    domain = [low, high if high > low else low + 1]
    rows = []
    for number, panel in enumerate(panels):
        last = number == len(panels) - 1
        x_axis = {"title": x_title, "grid": False, "tickCount": 8} if last else None
        x = {"field": "x", "type": "quantitative", "scale": {"domain": domain, "nice": False}, "axis": x_axis}
        rows.append(_panel(panel, x=x, failure=failure, evidence=evidence, buckets=buckets, first=number == 0))
    return framed({"vconcat": rows, "spacing": 12})


def _panel(
    panel: Panel, *, x: dict[str, Any], failure: float | None, evidence: Sequence[float], buckets: int, first: bool
) -> dict[str, Any]:
    values: list[dict[str, Any]] = []
    bands: list[dict[str, Any]] = []
    for line in panel.lines:
        thinned = downsample(line.points, buckets)
        values += [{"x": s, "y": v if math.isfinite(v) else None, "s": line.label} for s, v in thinned]
        bands += [{"x": a, "x2": b, "t": name} for a, b, name in gaps(thinned)]
    finite = [row["y"] for row in values if row["y"] is not None]
    log = bool(finite) and min(finite) > 0 and (panel.log or max(finite) / min(finite) >= LOG_FROM)
    colours = [SERIES[number if line.beside is None else line.beside] for number, line in enumerate(panel.lines)]
    legend = _legend(panel, failure_late=failure is not None and failure > sum(x["scale"]["domain"]) / 2)
    y: dict[str, Any] = {
        "field": "y",
        "type": "quantitative",
        "scale": {"type": "log"} if log else {"zero": panel.zero, "nice": True},
        "axis": {"title": None, "tickCount": 4, "format": ".6~g", "minExtent": 46},
    }
    layers: list[dict[str, Any]] = [_title(panel.title + (f" {say('chart.log')}" if log else ""))]
    if bands:
        layers.append(_bands(bands, x))
    low, high = x["scale"]["domain"]
    near = failure is not None and any(abs(step - failure) < 0.09 * (high - low) for step in evidence[:1])
    named = first and not near
    early = bool(evidence) and evidence[0] < low + 0.1 * (high - low)
    name = say("chart.evidence") if named else ""
    layers += _marks(evidence, x, colour=MARK, dash=[2, 3], label=name, align="left" if early else "right")
    if failure is not None:
        late = failure > low + 0.9 * (high - low)
        align = "right" if late else "left"
        layers += _marks(
            [failure], x, colour=FAILURE, dash=[5, 3], label=say("chart.failure") if first else "", align=align
        )
    layers.append(
        {
            "data": {"values": values},
            "mark": {
                "type": "line",
                "strokeWidth": 1.6,
                "invalid": "break-paths-filter-domains",
                "point": {"size": 22} if len(finite) <= FEW else False,
            },
            "encoding": {
                "x": x,
                "y": y,
                "color": {
                    "field": "s",
                    "type": "nominal",
                    "scale": {"domain": [line.label for line in panel.lines], "range": colours},
                    "legend": legend,
                },
                **_dashes(panel, legend),
            },
        }
    )
    if bands:
        layers.append(_band_labels(bands, x))
    return {
        "width": WIDTH,
        "height": PANEL_HEIGHT,
        "layer": layers,
        "resolve": {"scale": {"color": "independent", "strokeDash": "independent"}},
    }


def _dashes(panel: Panel, legend: dict[str, Any] | None) -> dict[str, Any]:
    """Lines that are only there to compare with are dashed, on the plot and in the legend."""
    if all(line.beside is None for line in panel.lines):
        return {}
    scale = {
        "domain": [line.label for line in panel.lines],
        "range": [[1, 0] if line.beside is None else [4, 3] for line in panel.lines],
    }
    return {"strokeDash": {"field": "s", "type": "nominal", "scale": scale, "legend": legend}}


def _title(text: str) -> dict[str, Any]:
    """A title as a mark: a title of the view would move when labels stand above the plot."""
    mark = {"type": "text", "text": text, "color": TEXT, "fontSize": 12, "fontWeight": 600, "align": "left"}
    return {"data": {"values": [{}]}, "mark": mark, "encoding": {"x": {"value": -46}, "y": {"value": -15}}}


def _legend(panel: Panel, *, failure_late: bool) -> dict[str, Any] | None:
    """In the row of the title, on the side away from the mark of the failure; on the right when it is too long."""
    if len(panel.lines) < 2:
        return None
    length = sum(34 + 6.4 * len(line.label) for line in panel.lines)
    left = 7.5 * len(panel.title) + (60 if panel.log else 0)
    if left + length > WIDTH:
        return {"orient": "right", "title": None}
    at = left if failure_late else WIDTH - length
    return {"orient": "none", "legendX": at, "legendY": -22, "direction": "horizontal", "title": None}


def _marks(
    steps: Sequence[float], x: dict[str, Any], *, colour: str, dash: list[int], label: str, align: str
) -> list[dict[str, Any]]:
    if not steps:
        return []
    data = {"values": [{"x": step} for step in steps]}
    rules: list[dict[str, Any]] = [
        {
            "data": data,
            "mark": {"type": "rule", "color": colour, "strokeWidth": 1.2, "strokeDash": dash},
            "encoding": {"x": x},
        }
    ]
    if label:
        text = {"type": "text", "color": colour, "fontSize": 11, "dy": -6, "baseline": "bottom", "align": align}
        rules.append(
            {
                "data": {"values": [{"x": steps[0], "t": label}]},
                "mark": text,
                "encoding": {"x": x, "y": {"value": 4}, "text": {"field": "t"}},
            }
        )
    return rules


def _bands(bands: list[dict[str, Any]], x: dict[str, Any]) -> dict[str, Any]:
    return {
        "data": {"values": bands},
        "mark": {"type": "rect", "color": FAILURE, "opacity": 0.12, "stroke": FAILURE, "strokeWidth": 1},
        "encoding": {"x": x, "x2": {"field": "x2"}},
    }


def _band_labels(bands: list[dict[str, Any]], x: dict[str, Any]) -> dict[str, Any]:
    seen: dict[str, dict[str, Any]] = {}
    for band in bands:
        seen.setdefault(band["t"], band)
    return {
        "data": {"values": list(seen.values())},
        "mark": {"type": "text", "color": FAILURE, "fontSize": 11, "fontWeight": 600, "align": "left", "dx": 4},
        "encoding": {"x": x, "y": {"value": PANEL_HEIGHT / 2}, "text": {"field": "t"}},
    }


COLOURS = frozenset({TEXT, GRID, AXIS, FAILURE, MARK, *SERIES})
"""Every colour a chart may use; style.css has a dark counterpart for each."""

"""An experiment: control against treatment, as curves over steps or as one mark a seed."""

from __future__ import annotations

import math
from typing import Any

from rca.diagnosis import Arm
from rca.report.chart_specs.curves import downsample, gaps
from rca.report.chart_specs.theme import SERIES, framed, name_extent
from rca.report.words import say, word

WIDTH = 400
HEIGHT = 170
COLOURS = {"control": SERIES[1], "treatment": SERIES[0], "reference": SERIES[5]}


def arms_spec(arms: list[Arm], *, metric: str) -> dict[str, Any] | None:
    """Curves when the arms have them, else their values by seed; None when there is neither."""
    names = [word("arm", arm.name) for arm in arms]
    colour = {
        "field": "s",
        "type": "nominal",
        "scale": {"domain": names, "range": [COLOURS.get(arm.name, SERIES[3]) for arm in arms]},
        "legend": {"orient": "top", "title": None, "direction": "horizontal"},
    }
    if any(len(arm.curve) > 1 for arm in arms):
        return _curves(arms, colour)
    if any(arm.values for arm in arms):
        return _values(arms, colour, metric)
    return None


def _curves(arms: list[Arm], colour: dict[str, Any]) -> dict[str, Any]:
    rows = [
        {"x": x, "y": y if math.isfinite(y) else None, "s": word("arm", arm.name)}
        for arm in arms
        for x, y in downsample(arm.curve, 80)
    ]
    finite = [row["y"] for row in rows if isinstance(row["y"], (int, float))]
    log = bool(finite) and min(finite) > 0 and max(finite) / min(finite) > 100
    line = {
        "data": {"values": rows},
        "mark": {"type": "line", "strokeWidth": 2, "invalid": "break-paths-filter-domains"},
        "encoding": {
            "x": {
                "field": "x",
                "type": "quantitative",
                "axis": {"title": say("chart.step"), "grid": False, "tickCount": 6},
            },
            "y": {
                "field": "y",
                "type": "quantitative",
                "scale": {"type": "log"} if log else {"zero": False},
                "axis": {
                    "title": say("chart.mean_loss") + (f" {say('chart.log')}" if log else ""),
                    "tickCount": 5,
                    "format": ".6~g",
                },
            },
            "color": colour,
        },
    }
    layers = [line, *_lost(arms, colour)]
    return framed({"width": WIDTH, "height": HEIGHT, "layer": layers, "resolve": {"scale": {"y": "independent"}}})


def _lost(arms: list[Arm], colour: dict[str, Any]) -> list[dict[str, Any]]:
    """Where the curve of an arm stops being a number, in words and at its step."""
    rows = [
        {
            "x": found[0][0],
            "t": say("chart.lost", arm=word("arm", arm.name), what=found[0][2], step=f"{found[0][0]:g}"),
            "s": word("arm", arm.name),
            "n": n,
        }
        for n, arm in enumerate(arms)
        if (found := gaps(arm.curve))
    ]
    if not rows:
        return []
    text = {"type": "text", "align": "left", "dx": 4, "fontSize": 11, "fontWeight": 600}
    y = {"field": "n", "type": "quantitative", "scale": {"domain": [12, 0]}, "axis": None}
    x = {"field": "x", "type": "quantitative"}
    return [
        {"data": {"values": rows}, "mark": text, "encoding": {"x": x, "y": y, "text": {"field": "t"}, "color": colour}}
    ]


def _values(arms: list[Arm], colour: dict[str, Any], metric: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = [
        {"s": word("arm", arm.name), "x": value} for arm in arms for value in arm.values if math.isfinite(value)
    ]
    return framed(
        {
            "width": WIDTH,
            "height": 26 * len(arms) + 20,
            "data": {"values": rows},
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
            "encoding": {
                "x": {
                    "field": "x",
                    "type": "quantitative",
                    "scale": {"zero": True},
                    "axis": {"title": say("chart.seed_marks", metric=metric), "tickCount": 6, "format": ".6~g"},
                },
                "y": {
                    "field": "s",
                    "type": "nominal",
                    "sort": None,
                    "axis": {"title": None, "grid": True, "minExtent": name_extent(rows, "s")},
                },
                "color": {**colour, "legend": None},
            },
        }
    )

"""Where the step time went: one bar a category."""

from __future__ import annotations

from typing import Any

from rca.diagnosis import Breakdown
from rca.report.chart_specs.theme import SERIES, TEXT, framed, name_extent
from rca.report.words import say, shown


def steps_spec(breakdown: Breakdown) -> dict[str, Any]:
    """Shares of one step, longest first, with the time each took."""
    rows: list[dict[str, Any]] = [
        {"c": shown(name), "v": 100 * share, "t": f"{100 * share:.0f}%  {breakdown.step_us * share / 1000:.4g} ms"}
        for name, share in sorted(breakdown.shares, key=lambda item: -item[1])
    ]
    y = {
        "field": "c",
        "type": "nominal",
        "sort": None,
        "axis": {"title": None, "grid": False, "domain": False, "ticks": False, "minExtent": name_extent(rows, "c")},
    }
    top = max(row["v"] for row in rows) * 1.25
    x = {
        "field": "v",
        "type": "quantitative",
        "scale": {"domain": [0, top]},
        "axis": {"title": say("chart.share"), "tickCount": 6},
    }
    return framed(
        {
            "width": 560,
            "height": 22 * len(rows),
            "data": {"values": rows},
            "layer": [
                {"mark": {"type": "bar", "color": SERIES[0], "height": 13}, "encoding": {"x": x, "y": y}},
                {
                    "mark": {"type": "text", "align": "left", "dx": 5, "color": TEXT, "fontSize": 11},
                    "encoding": {"x": x, "y": y, "text": {"field": "t"}},
                },
            ],
        }
    )

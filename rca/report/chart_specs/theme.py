"""Colours and sizes of all charts.

Every colour is one of these exact values, so that style.css can give it its dark counterpart by attribute selector;
without styles the chart is readable on white. Series colours: Okabe and Ito's palette, which colour-blind readers tell
apart, darkened where it was too pale on white.
"""

from __future__ import annotations

from typing import Any

from rich.cells import cell_len

TEXT = "#3c4046"
GRID = "#e6e7e9"
AXIS = "#a9adb3"
FAILURE = "#b3261e"
MARK = "#8a5a00"
SERIES = ("#0b63a8", "#c4620a", "#00795b", "#a4407d", "#7a6a00", "#4d5057")
WIDTH = 820
"""Width of the plotting area in pixels."""


def framed(spec: dict[str, Any], *, title: str = "") -> dict[str, Any]:
    """The specification with the common configuration."""
    top: dict[str, Any] = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": None,
        "padding": {"left": 4, "right": 12, "top": 4, "bottom": 4},
        "config": {
            "font": "system-ui, sans-serif",
            "aria": False,
            "mark": {"aria": False},
            "view": {"stroke": None},
            "axis": {
                "labelColor": TEXT,
                "titleColor": TEXT,
                "gridColor": GRID,
                "domainColor": AXIS,
                "tickColor": AXIS,
                "labelFontSize": 11,
                "titleFontSize": 11,
                "titleFontWeight": "normal",
                "labelFlush": False,
                "tickSize": 4,
            },
            "legend": {
                "labelColor": TEXT,
                "labelFontSize": 11,
                "symbolStrokeWidth": 2.5,
                "columnPadding": 22,
                "labelLimit": 260,
            },
            "title": {"color": TEXT, "fontSize": 12, "anchor": "start", "fontWeight": 600, "offset": 6},
        },
    }
    if title:
        top["title"] = title
    return {**top, **spec}


def name_extent(rows: list[dict[str, Any]], field: str) -> int:
    """Room for the longest name beside an axis, in pixels: a reader's font may be wider than the one measured with."""
    return min(260, 12 + 7 * max((cell_len(str(row[field])) for row in rows), default=0))

"""What was said on which rank, and when: the order of a failure across ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rca.diagnosis import TimelineEntry
from rca.report.chart_specs.theme import FAILURE, MARK, SERIES, TEXT, WIDTH, framed
from rca.report.words import say, word

SEVERITIES = ("info", "warning", "error", "fatal")
SHAPES = ("circle", "triangle-up", "square", "cross")
COLOURS = (SERIES[5], MARK, SERIES[1], FAILURE)
TICKS = (1, 10, 60, 600, 3_600, 36_000)
"""Seconds marked on a symlog axis."""
MAX_RANKS = 32
MAX_MARKS = 400


def ranks_spec(
    entries: Sequence[TimelineEntry], *, failing: int | None = None, ranks: Sequence[int] = ()
) -> dict[str, Any] | None:
    """One row a rank over seconds from the first failure; None with fewer than two ranks or without times.

    `failing` is the rank that failed first: its row is named, and has a mark at zero even where its line names no rank.
    Those of `ranks` that said nothing have a row too, while there is room.
    """
    timed = [e for e in entries if e.rank is not None and e.relative_s is not None]
    spoke = sorted({e.rank for e in timed if e.rank is not None})
    if len({*spoke, *(() if failing is None else (failing,))}) < 2 or not spoke:
        return None
    first = _first_failing(timed)
    shown = set((first if failing is None else [failing, *(rank for rank in first if rank != failing)])[:MAX_RANKS])
    silent = [rank for rank in ranks if rank not in shown][: MAX_RANKS - len(shown)]
    rows: set[tuple[float, int | None, str]] = {
        (round(e.relative_s or 0.0, 3), e.rank, e.severity if e.severity in SEVERITIES else "info")
        for e in timed
        if e.rank in shown
    }
    if failing is not None and not any(row[:2] == (0.0, failing) for row in rows):
        rows.add((0.0, failing, "fatal"))
    worst_first = sorted(rows, key=lambda row: (-SEVERITIES.index(row[2]), row[0], row[1] or 0))[:MAX_MARKS]
    present = [name for name in SEVERITIES if any(row[2] == name for row in worst_first)]
    colours = [COLOURS[SEVERITIES.index(name)] for name in present]
    shapes = [SHAPES[SEVERITIES.index(name)] for name in present]
    x = {"field": "x", "type": "quantitative"}
    names = [word("severity", name) for name in present]
    scale = {"domain": names, "range": colours}
    axis: dict[str, Any] = {"title": say("chart.from_failure"), "grid": True, "tickCount": 9, "format": ".6~g"}
    wide = _wide(worst_first)
    if wide:
        axis["values"] = [sign * tick for sign in (-1, 1) for tick in TICKS] + [0]
    return framed(
        {
            "width": WIDTH - 60,
            "height": max(60, 17 * len({*shown, *silent})),
            "layer": [
                {
                    "data": {"values": [{"x": 0}]},
                    "mark": {"type": "rule", "color": FAILURE, "strokeDash": [5, 3], "strokeWidth": 1.2},
                    "encoding": {"x": x},
                },
                *_first_mark(failing, worst_first),
                {
                    "data": {
                        "values": [{"x": a, "r": b, "s": word("severity", c)} for a, b, c in reversed(worst_first)]
                    },
                    "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
                    "encoding": {
                        "x": {
                            **x,
                            "scale": {"type": "symlog", "constant": 1} if wide else {"nice": False, "padding": 16},
                            "axis": axis,
                        },
                        "y": {
                            "field": "r",
                            "type": "ordinal",
                            "scale": {"domain": sorted({*shown, *silent})},
                            "axis": {"title": say("chart.rank"), "grid": True, "domain": False, **_named(failing)},
                        },
                        "color": {
                            "field": "s",
                            "type": "nominal",
                            "scale": scale,
                            "legend": {"orient": "right", "title": None},
                        },
                        "shape": {
                            "field": "s",
                            "type": "nominal",
                            "scale": {"domain": names, "range": shapes},
                            "legend": {"orient": "right", "title": None},
                        },
                    },
                },
            ],
        }
    )


def _named(failing: int | None) -> dict[str, Any]:
    """The number of the first failing rank stands out among the labels of the axis."""
    if failing is None:
        return {}
    test = f"datum.value === {failing}"
    return {
        "labelFontWeight": {"condition": {"test": test, "value": 700}, "value": 400},
        "labelColor": {"condition": {"test": test, "value": FAILURE}, "value": TEXT},
    }


def _first_mark(failing: int | None, rows: Sequence[tuple[float, int | None, str]]) -> list[dict[str, Any]]:
    """A ring around the first failure and its name above the line at zero."""
    if failing is None:
        return []
    low, high = min(row[0] for row in rows), max(row[0] for row in rows)
    late = high <= 0 or -low > 4 * high
    x = {"field": "x", "type": "quantitative"}
    ring = {"type": "point", "filled": False, "size": 210, "stroke": FAILURE, "strokeWidth": 1.6, "opacity": 1}
    text = {"type": "text", "color": FAILURE, "fontSize": 11, "fontWeight": 600, "baseline": "bottom", "dy": -4}
    values = {"values": [{"x": 0, "r": failing, "t": say("chart.first_rank", rank=failing)}]}
    return [
        {"data": values, "mark": ring, "encoding": {"x": x, "y": {"field": "r", "type": "ordinal"}}},
        {
            "data": values,
            "mark": {**text, "align": "right" if late else "left"},
            "encoding": {"x": x, "y": {"value": 0}, "text": {"field": "t"}},
        },
    ]


def _first_failing(entries: Sequence[TimelineEntry]) -> list[int]:
    """Ranks by their first error, those that failed by themselves before the others, those without an error last.

    The clocks of nodes differ, so that some echoes bear earlier times than what they echo.
    """
    first: dict[int, tuple[int, float]] = {}
    for entry in entries:
        if entry.rank is None or entry.relative_s is None:
            continue
        failed = entry.severity in ("error", "fatal")
        key = (0 if failed and entry.role == "initiating" else 1 if failed else 2, entry.relative_s)
        first[entry.rank] = min(first.get(entry.rank, key), key)
    return sorted(first, key=lambda rank: (first[rank], rank))


def _wide(rows: Sequence[tuple[float, int | None, str]]) -> bool:
    """Whether the distances from the failure span more than a factor of 100, which a symlog axis can show."""
    distances = sorted({abs(row[0]) for row in rows if row[0]})
    return len(distances) > 1 and distances[-1] / distances[0] > 100

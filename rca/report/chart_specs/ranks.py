"""What was said on which rank, and when: the order of a failure across ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rca.diagnosis import TimelineEntry
from rca.report.chart_specs.theme import FAILURE, MARK, SERIES, WIDTH, framed
from rca.report.words import say, word

SEVERITIES = ("info", "warning", "error", "fatal")
SHAPES = ("circle", "triangle-up", "square", "cross")
COLOURS = (SERIES[5], MARK, SERIES[1], FAILURE)
TICKS = (1, 10, 60, 600, 3_600, 36_000)
"""Seconds marked on a symlog axis."""
MAX_RANKS = 32
MAX_MARKS = 400


def ranks_spec(entries: Sequence[TimelineEntry]) -> dict[str, Any] | None:
    """One row a rank over seconds from the first failure; None with fewer than two ranks or without times."""
    timed = [e for e in entries if e.rank is not None and e.relative_s is not None]
    ranks = sorted({e.rank for e in timed if e.rank is not None})
    if len(ranks) < 2:
        return None
    shown = set(_first_failing(timed)[:MAX_RANKS])
    rows = {
        (round(e.relative_s or 0.0, 3), e.rank, e.severity if e.severity in SEVERITIES else "info")
        for e in timed
        if e.rank in shown
    }
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
            "height": max(60, 17 * len(shown)),
            "layer": [
                {
                    "data": {"values": [{"x": 0}]},
                    "mark": {"type": "rule", "color": FAILURE, "strokeDash": [5, 3], "strokeWidth": 1.2},
                    "encoding": {"x": x},
                },
                {
                    "data": {"values": [{"x": a, "r": b, "s": word("severity", c)} for a, b, c in reversed(worst_first)]},
                    "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
                    "encoding": {
                        "x": {
                            **x,
                            "scale": {"type": "symlog", "constant": 1} if wide else {"nice": True},
                            "axis": axis,
                        },
                        "y": {
                            "field": "r",
                            "type": "ordinal",
                            "axis": {"title": say("chart.rank"), "grid": True, "domain": False},
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

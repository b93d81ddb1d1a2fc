"""A table of figures for the terminal: as wide as it may be, and no wider."""

from __future__ import annotations

from collections.abc import Iterator

from rca.diagnosis import Table
from rca.report.colour import paint
from rca.report.measures import clean, one_line
from rca.report.tables import figure_columns
from rca.report.words import say
from rca.report.wrapping import columns, padded, wrapped

_HEADING = 6
"""Letters of the heading of a column of figures, where the whole word does not fit."""
_EASY = 30
"""Width of the first column that reads well."""
_LEAST = 18
"""Width below which the first column is not pressed."""


def table_text(table: Table, *, width: int = 80, colour: bool = False) -> str:
    """Return the table in at most `width` columns, its marked row with an arrow, then the lines to paste and the note.

    A last column of words is left out where it does not fit; only the lines to paste may be longer.
    """
    lines = [paint(line, "strong", on=colour) for line in wrapped(one_line(table.title), width)]
    lines += _rows(table, width, colour)
    figures = zip(table.columns, figure_columns(table), strict=True)
    cut = [f"{_short(heading)} {heading}" for heading, figure in figures if figure and _short(heading) != heading]
    if cut:
        lines += ["", *(paint(line, "quiet", on=colour) for line in wrapped("; ".join(cut), width))]
    if table.paste:
        lines += ["", paint(say("table.paste"), "label", on=colour), *clean(table.paste).splitlines()]
    if table.note:
        lines += ["", *(paint(line, "quiet", on=colour) for line in wrapped(one_line(table.note), width))]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _rows(table: Table, width: int, colour: bool) -> Iterator[str]:
    figures = figure_columns(table)
    places = list(range(len(table.columns)))
    short = {index: _short(table.columns[index]) if figures[index] else table.columns[index] for index in places}
    widths = {index: _widest(table, index, short) for index in places}
    needed = 2 + min(widths[0], _EASY) + sum(widths[index] + 1 for index in places[1:])
    if not figures[-1] and len(places) > 1 and needed > width:
        places.pop()
    spare = width - 2 - sum(widths[index] + 1 for index in places[1:])
    widths[0] = max(_LEAST, min(widths[0], spare))
    yield paint(_line([short[index] for index in places], places, widths, figures, mark=" "), "quiet", on=colour)
    for number, row in enumerate(table.rows):
        best = number == table.marked
        first, *rest = wrapped(one_line(row[0]), widths[0]) or [""]
        line = _line([first, *(row[i] for i in places[1:])], places, widths, figures, mark=">" if best else " ")
        for text in (line, *(f"    {more}" for more in rest)):
            yield paint(text, "ok", on=colour) if best else text


def _line(cells: list[str], places: list[int], widths: dict[int, int], figures: tuple[bool, ...], *, mark: str) -> str:
    parts = [
        " " * (widths[index] - columns(shown)) + shown if figures[index] else padded(shown, widths[index])
        for index, shown in zip(places, map(one_line, cells), strict=True)
    ]
    return f"{mark} {' '.join(parts)}"


def _widest(table: Table, index: int, headings: dict[int, str]) -> int:
    cells = (one_line(row[index]) for row in table.rows if index < len(row))
    return max(columns(headings[index]), *map(columns, cells)) if table.rows else columns(headings[index])


def _short(heading: str) -> str:
    return heading if columns(heading) <= _HEADING + 1 else f"{heading[:_HEADING].rstrip()}."

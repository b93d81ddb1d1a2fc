"""Metric lines and bars that differ from the one before in nothing but numbers and time, read many at once.

A training loop prints the same line a hundred thousand times. Once several in a row were read one by one and nothing
but metrics came of them, the next ones are held back and taken apart together, their numbers as columns. A line that
does not fit is read like the first ones, in its place. (Python's `re` takes 5 us a line here, RE2 on a column of an
Arrow array 13.)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rca.ingest.logs.prefixes import PrefixForm
from rca.ingest.training_metrics.bar_template import BarTemplate
from rca.ingest.training_metrics.line_template import LineTemplate
from rca.ingest.training_metrics.pairs import Reading

_TIME = r"(?P<time>.{1,60}?)"


class Lines(NamedTuple):
    """Alike lines, taken apart."""

    times: list[str] | None
    """The time in front of each, as printed; None where lines carry none."""
    counters: dict[str, npt.NDArray[np.int64]]
    values: npt.NDArray[np.float64]
    """A row a line, a column a metric, in common units."""
    template: LineTemplate | BarTemplate
    """What all lines have in common."""
    readings: tuple[Reading, ...]

    def part(self, start: int, end: int) -> Lines:
        """Return some of the lines."""
        return self._replace(
            times=None if self.times is None else self.times[start:end],
            counters={role: numbers[start:end] for role, numbers in self.counters.items()},
            values=self.values[start:end],
        )

    def rows(self, rows: Sequence[int]) -> Lines:
        """Return some of the lines, by their places."""
        return self._replace(
            times=None if self.times is None else [self.times[row] for row in rows],
            counters={role: numbers[rows] for role, numbers in self.counters.items()},
            values=self.values[rows],
        )


class Look(NamedTuple):
    """What lines of metrics have in common."""

    template: LineTemplate | BarTemplate
    form: PrefixForm


class AlikeLines:
    """Reads lines of one look."""

    def __init__(self, look: Look) -> None:
        self.look = look
        form = look.form
        before = re.escape(form.head) + (_TIME if form.kind else "") + re.escape(form.tail)
        self._pattern = re.compile(before + look.template.pattern)

    def read(self, raw: Sequence[bytes]) -> tuple[npt.NDArray[np.bool_], Lines] | None:
        """Return which lines fit, and those taken apart; None where a number of theirs is none."""
        fullmatch = self._pattern.fullmatch
        found = [fullmatch(line.decode("utf-8", "replace")) for line in raw]
        fits = np.array([match is not None for match in found])
        columns = list(zip(*(match.groups() for match in found if match is not None), strict=True))
        if not columns:
            return None
        try:
            return fits, self._lines(columns)
        except (ValueError, OverflowError):
            return None

    def _lines(self, columns: Sequence[tuple[str, ...]]) -> Lines:
        times = None
        if self.look.form.kind:
            times, columns = list(columns[0]), columns[1:]
        counters: dict[str, npt.NDArray[np.int64]] = {}
        values: list[npt.NDArray[np.float64]] = []
        readings: list[Reading] = []
        for part, column in zip(self.look.template.parts, columns, strict=True):
            if any("," in text for text in column):
                column = tuple(text.replace(",", "") for text in column)  # noqa: PLW2901
            if isinstance(part, str):
                counters[part] = np.array([int(text) for text in column], dtype=np.int64)
            else:
                readings.append(part)
                values.append(part.column(np.array(column, dtype=np.float64)))
        # Lines that tell nothing but how far training is have no columns.
        table = np.column_stack(values) if values else np.empty((len(columns[0]), 0))
        return Lines(times, counters, table, self.look.template, tuple(readings))

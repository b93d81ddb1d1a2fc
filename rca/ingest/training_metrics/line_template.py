"""The shape of a metrics line, learnt from one and matched against the next: loops print the same line."""

from __future__ import annotations

import re

from rca.ingest.training_metrics.counters import Position
from rca.ingest.training_metrics.pairs import NUMBER, Pair, Reading, Slot

_DIGITS = re.compile(r"\d[\d.,:]*|[ \t]+")
_KEPT = 8
_LEARNT = 64


class LineTemplate:
    """One line with its numbers left open."""

    __slots__ = ("_counters", "_evaluation", "_pattern", "_readings", "_strong", "parts")

    def __init__(self, message: str, place: Position, found: list[Slot]) -> None:
        self._evaluation = place.evaluation
        self._strong = place.strong
        items: list[tuple[int, int, str | Reading]] = [*place.spans, *found]
        items.sort(key=lambda item: item[0])
        self._counters: list[tuple[int, str]] = []
        self._readings: list[tuple[int, Reading]] = []
        parts: list[str] = []
        end = 0
        for group, (start, stop, role) in enumerate(items, start=1):
            if start < end:
                raise ValueError("two readings of one number")
            parts.append(literal(message[end:start]))
            if isinstance(role, str):
                self._counters.append((group, role))
                parts.append(r"([\d,]+)")
            else:
                self._readings.append((group, role))
                parts.append(f"({NUMBER})")
            end = stop
        parts.append(literal(message[end:]))
        self._pattern = re.compile("".join(parts))
        self.parts: tuple[str | Reading, ...] = tuple(role for _, _, role in items)
        """The numbers in their order: the name of a counter, or how a metric is read."""

    def read(self, message: str) -> tuple[Position, list[Pair]] | None:
        """Return the counters and metrics of a line of this shape, or None."""
        found = self._pattern.fullmatch(message)
        if found is None:
            return None
        place = Position(evaluation=self._evaluation, strong=self._strong)
        for group, role in self._counters:
            place.put(role, found[group])
        values: list[Pair] = []
        for group, reading in self._readings:
            pair = reading.pair(found[group])
            if pair is None:
                return None
            values.append(pair)
        return place, values

    def place(self) -> Position:
        """Return what is known of the counters before their numbers are read."""
        return Position(evaluation=self._evaluation, strong=self._strong)

    @property
    def pattern(self) -> str:
        """The line with its numbers as groups, in the order of `parts`."""
        return self._pattern.pattern


class LineTemplates:
    """The shapes seen lately, the last one that fitted first."""

    def __init__(self) -> None:
        self._known: list[LineTemplate] = []
        self._learnt = 0

    def read(self, message: str) -> tuple[Position, list[Pair]] | None:
        """Return the counters and metrics of a line of a known shape, or None."""
        for index, template in enumerate(self._known):
            found = template.read(message)
            if found is not None:
                if index:
                    self._known.insert(0, self._known.pop(index))
                return found
        return None

    @property
    def latest(self) -> LineTemplate | None:
        """The shape of the line that was read last."""
        return self._known[0] if self._known else None

    def learn(self, message: str, place: Position, found: list[Slot]) -> None:
        """Keep the shape of a line; a source whose lines never repeat stops costing anything."""
        if self._learnt >= _LEARNT:
            return
        self._learnt += 1
        try:
            template = LineTemplate(message, place, found)
        except ValueError:
            return
        self._known = [template, *self._known[: _KEPT - 1]]


def literal(text: str) -> str:
    """A pattern for what stands between two readings: other numbers and the width of blanks may differ."""
    parts: list[str] = []
    end = 0
    for item in _DIGITS.finditer(text):
        parts.append(re.escape(text[end : item.start()]))
        parts.append(r"[\d.,:]+" if item[0][0].isdigit() else r"[ \t]*")
        end = item.end()
    parts.append(re.escape(text[end:]))
    return "".join(parts)

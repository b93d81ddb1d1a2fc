"""The shape of a training bar, learnt from one state of it: the next states differ in their numbers."""

from __future__ import annotations

import re

from rca.ingest.training_metrics.bars import Bar, bar_parts
from rca.ingest.training_metrics.line_template import literal
from rca.ingest.training_metrics.pairs import MOST, NUMBER, Reading, rate, slots

_KEPT = 8
_LEARNT = 64


class BarTemplate:
    """One state of a bar with its numbers left open; what it counts to is the same in all of them."""

    __slots__ = ("_pattern", "bar", "parts")

    def __init__(self, message: str, drawn: Bar, found: re.Match[str]) -> None:
        """Take a state apart; ValueError where its numbers are not those of a plain training bar."""
        if drawn.kind != "train" or drawn.step is not None or drawn.rate is None or len(message) > MOST:
            raise ValueError("no plain training bar")
        if not (found["n"].isdigit() and found["total"].isdigit()):
            raise ValueError("a count with a unit")
        items: list[tuple[int, int, str, str | Reading | None]] = [
            (*found.span("percent"), r"\d{1,3}", None),
            (*found.span("drawn"), r"[^|]{0,200}", None),
            (*found.span("n"), r"(\d{1,12})", "done"),
            (*found.span("elapsed"), r"[\d:]{4,12}", None),
            (*found.span("eta"), r"[\d:?]{1,12}", None),
            (*found.span("rate"), r"([\d.]{1,12})", rate(drawn.unit or "it/s")),
        ]
        if drawn.epoch is not None:
            items.append((*_epoch(message, drawn, found), r"(\d{1,6})", "epoch"))
        after = found.end("postfix") - len(drawn.postfix)
        items += [(after + slot.start, after + slot.end, f"({NUMBER})", slot.reading) for slot in slots(drawn.postfix)]
        items.sort(key=lambda item: item[0])
        pattern, end = "", 0
        for start, stop, open_pattern, _ in items:
            if start < end:
                raise ValueError("two readings of one number")
            # The name of a bar and what it counts to tell bars apart; behind the rate other numbers may differ.
            between = message[end:start]
            pattern += (literal(between) if end >= found.end("rate") else _same(between)) + open_pattern
            end = stop
        self._pattern = re.compile(pattern + literal(message[end:]))
        self.bar = drawn
        self.parts: tuple[str | Reading, ...] = tuple(part for *_, part in items if part is not None)
        """The numbers in their order: the name of a counter, or how a metric is read."""

    @property
    def pattern(self) -> str:
        """The state with its numbers as groups, in the order of `parts`."""
        return self._pattern.pattern

    def fits(self, message: str) -> bool:
        """Whether a state is one of this bar."""
        return self._pattern.fullmatch(message) is not None


class BarTemplates:
    """The training bars seen lately."""

    def __init__(self) -> None:
        self._known: list[BarTemplate] = []
        self._learnt = 0

    def of(self, message: str, drawn: Bar) -> BarTemplate | None:
        """Return the shape of a state that was just read, learnt if it is new; None where it has none."""
        for template in self._known:
            if template.fits(message):
                return template
        if self._learnt >= _LEARNT:
            return None
        self._learnt += 1
        found = bar_parts(message)
        if found is None:
            return None
        try:
            template = BarTemplate(message, drawn, found)
        except ValueError:
            return None
        self._known = [template, *self._known[: _KEPT - 1]]
        return template


def _epoch(message: str, drawn: Bar, found: re.Match[str]) -> tuple[int, int]:
    """Return where the number of the epoch stands in the name of a bar."""
    start, end = found.span("desc")
    number = re.compile(r"epoch\s*(\d{1,6})", re.I).search(message, start, end)
    if number is None or int(number[1]) != drawn.epoch:
        raise ValueError("no number of an epoch")
    return number.span(1)


def _same(text: str) -> str:
    """A pattern for a text of which nothing but the width of blanks may differ."""
    return r"[ \t]*".join(re.escape(part) for part in re.split(r"[ \t]+", text))

"""Lines of metrics that were held back: those of one look are taken apart together, all are given in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from rca.ingest.logs.scanner import Hit
from rca.ingest.logs.text_document import Chunk, TextDocument
from rca.ingest.training_metrics.alike import AlikeLines, Lines, Look

ShapeKey = tuple[frozenset[int], bytes]
"""Patterns that may match on a line, and its beginning without what varies."""


class Shape:
    """What came of the lines of one shape so far."""

    __slots__ = ("alike", "barren", "in_a_row", "look")

    def __init__(self) -> None:
        self.barren = 0.0
        """How many in a row said nothing."""
        self.look: Look | None = None
        self.in_a_row = 0
        """How many in a row gave nothing but metrics, and looked alike."""
        self.alike: AlikeLines | None = None
        """How the next ones are read, once that is sure enough."""


class Held(NamedTuple):
    """A line that waits for others of its look."""

    hit: Hit
    line: int
    shape: Shape
    alike: AlikeLines


class Waiting(NamedTuple):
    """A line of messages that stands among lines held back, and is read after them."""

    hit: Hit
    line: int
    key: ShapeKey
    shape: Shape | None


class Run(NamedTuple):
    """Held lines of one look with none of another look in between."""

    held: Sequence[Held]
    parsed: tuple[Lines, list[int | None]] | None
    """Their numbers and times; None where they do not look as was thought."""


def runs(held: Sequence[Held], chunk: Chunk, document: TextDocument, *, line_bytes: int) -> Iterator[Run]:
    """Yield the lines in their order; lines longer than `line_bytes` are left to be read one by one."""
    parsed: dict[int, tuple[Lines, list[int | None]]] = {}
    rows = [-1] * len(held)
    """Place of each line among those of its look; -1 where it does not fit."""
    of_look: dict[int, list[int]] = {}
    for index, item in enumerate(held):
        if item.hit.end - item.hit.start <= line_bytes:
            of_look.setdefault(id(item.alike), []).append(index)
    for look, indexes in of_look.items():
        alike = held[indexes[0]].alike
        read = alike.read([chunk.text[held[index].hit.start : held[index].hit.end] for index in indexes])
        if read is None:
            continue
        fits, lines = read
        fitting = [index for index, fit in zip(indexes, fits.tolist(), strict=True) if fit]
        times = document.times(alike.look.form, lines.times, [held[index].line for index in fitting])
        if times is None:
            continue
        parsed[look] = lines, times
        for row, index in enumerate(fitting):
            rows[index] = row
    for (look, fit), group in groupby(range(len(held)), key=lambda index: (id(held[index].alike), rows[index] >= 0)):
        run = list(group)
        items = held[run[0] : run[-1] + 1]
        if fit:
            lines, times = parsed[look]
            start, end = rows[run[0]], rows[run[-1]] + 1
            yield Run(items, (lines.part(start, end), times[start:end]))
        else:
            yield Run(items, None)

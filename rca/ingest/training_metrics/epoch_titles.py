"""Epochs that stand in a line of their own above the bar that counts their batches, as Keras prints them."""

from __future__ import annotations

import re

from rca.ingest.training_metrics.counters import Position

_TITLE = re.compile(r"\s{0,8}Epoch (?P<epoch>\d{1,6})/(?P<epochs>\d{1,6})\s{0,8}")
_BAR = re.compile(r"\s{0,8}\d{1,9}/\d{1,9} (?:\[[=>.]|━|- \d{1,7}m?s - )")
"""A state of the bar, or the line that stands in its place at the end of an epoch: `37/37 - 5s - loss: 1.2`."""


class EpochTitles:
    """Places the batches of a bar in the epoch whose title stands above it."""

    def __init__(self) -> None:
        self._epoch: int | None = None
        self._epochs: int | None = None
        self._length: int | None = None

    @property
    def seen(self) -> bool:
        """Whether there was a title."""
        return self._epoch is not None

    def note(self, message: str) -> bool:
        """Keep the epoch when the line is a title."""
        found = _TITLE.fullmatch(message[:80])
        if found is None:
            return False
        self._epoch, self._epochs = int(found["epoch"]), int(found["epochs"])
        return True

    def placed(self, message: str, place: Position) -> Position:
        """Return the place within the epoch; a bar of another length belongs to an evaluation."""
        if self._epoch is None or place.epoch is not None or place.total is None or not _BAR.match(message):
            return place
        self._length = self._length or place.total
        inside = Position(evaluation=place.total != self._length, strong=place.strong)
        inside.own = True
        inside.epoch, inside.epochs = self._epoch, self._epochs
        inside.batch, inside.length = place.step, place.total
        return inside

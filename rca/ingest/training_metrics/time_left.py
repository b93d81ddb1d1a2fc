"""The time that a log says is left (`eta: 5:48:46`), which tells how far the run was meant to go."""

from __future__ import annotations

import re

_ETA = re.compile(r"\beta:? {0,2}(?P<eta>(?:\d{1,3} days?, )?\d{1,3}(?::\d\d){1,2})(?![\d:])", re.I)
_DAY = re.compile(r"(?P<days>\d+) days?, ")
_FEWEST = 3


class TimeLeft:
    """Collects the time left at each step of training."""

    def __init__(self) -> None:
        self._points: list[tuple[int, int]] = []

    def note(self, message: str, step: int) -> None:
        """Keep what the line says is left at `step`; the first, the one before the last and the last are enough."""
        found = _ETA.search(message) if "eta" in message or "ETA" in message else None
        if found is None or (self._points and step <= self._points[-1][0]):
            return
        self._points = [*self._points[:1], *self._points[1:][-1:], (step, _seconds(found["eta"]))]

    def planned(self) -> int | None:
        """Return the step at which nothing would be left; the last step when less than one more line was to come."""
        if len(self._points) < _FEWEST:
            return None
        (first, most), (before, _), (last, left) = self._points
        rate = (most - left) / (last - first)
        if rate <= 0:
            return None
        steps = left / rate
        return last if steps <= 1.5 * (last - before) else round(last + steps)


def _seconds(text: str) -> int:
    day = _DAY.match(text)
    total = 0
    for part in _DAY.sub("", text).split(":"):
        total = total * 60 + int(part)
    return total + (int(day["days"]) * 86_400 if day else 0)

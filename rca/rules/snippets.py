"""Gaps in the snippets of fixes, filled with what is known of the run: `<<lr.peak / 10 | 2e-5>>`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

_GAP = re.compile(
    r"<<(?P<names>[a-z][\w.]*(?: or [a-z][\w.]*)*)"
    r"(?: (?P<sign>\*|//?) (?P<factor>\d{1,9}))? \| (?P<otherwise>[^<>|\n]{1,60})>>"
)

Lookup = Callable[[str], "float | str | None"]
"""Name of a fact, or `config.` and a configuration key -> its value, None where the run does not tell it."""


def fitted(snippet: str, lookup: Lookup) -> str:
    """`snippet` with each gap filled: the run's value, times or divided by a number, else what stands after the bar.

    `a or b` takes the first that the run tells; `//` is for what is counted and yields a whole number of at least 1.
    """
    return _GAP.sub(lambda gap: _value(gap, lookup) or gap["otherwise"], snippet)


def plain(snippet: str) -> str:
    """`snippet` for a run of which nothing is known."""
    return fitted(snippet, lambda _: None)


def names(snippet: str) -> tuple[str, ...]:
    """What the gaps of `snippet` ask for."""
    return tuple(name for gap in _GAP.finditer(snippet) for name in gap["names"].split(" or "))


def _value(gap: re.Match[str], lookup: Lookup) -> str:
    found = next((value for name in gap["names"].split(" or ") if (value := lookup(name)) is not None), None)
    if gap["factor"] is None:
        return "" if found is None else _written(found)
    if not isinstance(found, (int, float)) or isinstance(found, bool) or not math.isfinite(found) or found <= 0:
        return ""
    factor = int(gap["factor"])
    if gap["sign"] == "//":
        return _written(max(1, int(found // factor)))
    return _written(found * factor if gap["sign"] == "*" else found / factor)


def _written(value: float | str) -> str:
    if isinstance(value, str):
        return value if re.fullmatch(r"[\w./:@+-]{1,120}", value) else ""
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.3g}"

"""One way to make a fact, so that no fact ever carries a value that was not computed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rca.facts.interface import Fact, FactValue

if TYPE_CHECKING:
    import numpy as np

HANDFUL = 6
"""Telling events kept with one fact."""


def emit(
    name: str,
    value: FactValue | np.generic | None,
    says: str,
    *,
    unit: str = "",
    events: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int64]] = (),
) -> Iterator[Fact]:
    """Yield the fact, or nothing when the value is missing, NaN or infinite."""
    plain: FactValue | None = value if value is None or isinstance(value, (bool, int, float, str)) else value.item()
    if plain is None or (isinstance(plain, float) and not math.isfinite(plain)):
        return
    seen = tuple(dict.fromkeys(int(event) for event in events))[:HANDFUL]
    yield Fact(name=name, value=plain, unit=unit, events=seen, says=says)


def number(value: float) -> str:
    """Write a number the way a reader expects it: four significant digits, no exponent where none is needed."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Inf" if value > 0 else "-Inf")
    if value == int(value) and abs(value) < 1e7:
        return f"{int(value)}"
    if value != 0 and (abs(value) < 1e-3 or abs(value) >= 1e6):
        return f"{value:.3g}"
    return f"{value:.4g}"


def percent(share: float) -> str:
    """Write a share as a percentage."""
    return f"{100 * share:.0f} %" if share >= 0.1 or share == 0 else f"{100 * share:.2g} %"

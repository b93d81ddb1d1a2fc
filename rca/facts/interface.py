"""What a fact is: a named value computed from events, with its unit and where it came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from rca.events import EventTable

FactValue = bool | int | float | str


@dataclass(frozen=True)
class Fact:
    """One computed value. A fact that cannot be computed does not exist: missing data is never evidence."""

    name: str
    """Dotted name, e.g. `loss.nan_step`."""
    value: FactValue
    unit: str = ""
    events: tuple[int, ...] = ()
    """Ids of the events that show it, most telling first (at most a handful)."""
    says: str = ""
    """One sentence a reader understands, with the numbers."""


Facts = Mapping[str, Fact]
FactFunction = Callable[[EventTable], Iterable[Fact]]

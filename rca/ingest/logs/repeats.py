"""Events of one source with their limits: repeated messages counted, the whole capped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rca.events import EventBuilder
from rca.ingest.interface import Source

_RANKS_TOLD = 4096
"""Ranks whose first report of a message is kept beyond the limit."""
_ONLY_COUNT_AFTER = 2
"""Times the limit after which a message is counted without another look, if nearly every candidate was one and no
other rank has told it for as many reports as the limit."""
_SURE = 0.98
_CHARACTERS = 32 << 20
"""Characters of text and attributes kept of one source: a log of nothing but tracebacks stays bounded."""


class BoundedEvents(EventBuilder):
    """An event builder that stops at a number of events or characters and counts what it refused."""

    def __init__(self, source: Source, limit: int) -> None:
        super().__init__(source.path, rank=source.rank, host=source.host)
        self._left = limit
        self._room = _CHARACTERS
        self.refused = 0

    def add(self, **columns: Any) -> None:
        """Add one event while the limit allows."""
        if self._left <= 0 or self._room <= 0:
            self.refused += 1
            return
        self._left -= 1
        super().add(**columns)
        *_, text, attrs = self._rows[-1]
        self._room -= len(text or "") + len(attrs or "")


class Repeats:
    """The reports of one signature: the first ones, the first of each rank, and the last are kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._candidates = 0
        self._count = 0
        self._kept = 0
        self._ranks: set[int | None] = set()
        self._since_new = 0
        """Reports since a rank told it for the first time."""
        self._held: Callable[[], dict[str, Any]] | None = None
        self._held_is_new = False

    def candidate(self) -> None:
        """Count a line that the scanner proposed."""
        self._candidates += 1

    def take(self, row: Callable[[], dict[str, Any]], rank: int | None, out: EventBuilder) -> None:
        """Keep the report, or hold it as the last one so far; its row is made only if it is kept."""
        self._count += 1
        if self._held is not None and (self._kept < self._limit - 1 or self._held_is_new):
            out.add(**self._held())
            self._kept += 1
        self._held_is_new = self.new(rank)
        self._since_new = 0 if self._held_is_new else self._since_new + 1
        self._ranks.add(rank)
        self._held = row

    def new(self, rank: int | None) -> bool:
        """Say whether a report of this rank would be kept as its first one."""
        return rank not in self._ranks and len(self._ranks) < _RANKS_TOLD

    def only_count(self) -> bool:
        """Say whether further reports need no look."""
        return (
            self._candidates >= _ONLY_COUNT_AFTER * self._limit
            and self._count >= _SURE * self._candidates
            and self._since_new >= self._limit
        )

    def more(self, count: int) -> None:
        """Count reports that were not looked at."""
        self._count += count

    def flush(self, out: EventBuilder) -> int:
        """Keep the last report with the count of all; return how many were not kept."""
        if self._held is None:
            return 0
        row = self._held()
        self._held = None  # it leads back to the whole text, which must go now and not wait for the collector
        if self._count > 1:
            row["attrs"] = {**row["attrs"], "count": self._count}
        out.add(**row)
        return self._count - self._kept - 1

"""Settings found in a log, on their way into the event table: placed, and told once however many ranks print them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rca.events import EventBuilder
from rca.ingest.logs.document import Document
from rca.ingest.settings.config_rows import add_settings

_MOST = 4000
"""Settings kept of one log; sixty-four ranks that print the same arguments count once."""


class _Placed(EventBuilder):
    """Passes configuration events on with the place, time and rank of a line of a log."""

    def __init__(self, out: EventBuilder, document: Document, line: int) -> None:
        super().__init__(document.path)
        self._out = out
        self._document = document
        self._line = line

    def add(self, **columns: Any) -> None:
        told = self._document.told
        key = (columns["name"], columns.get("text") or "")
        if key in told or len(told) >= _MOST:
            return
        told.add(key)
        prefix = self._document.prefix(self._line)
        columns |= {
            "line": self._line,
            "offset": self._document.offset(self._line),
            "time": self._document.time(self._line),
            "rank": prefix.rank,
            "host": prefix.host,
        }
        self._out.add(**columns)


def tell(out: EventBuilder, document: Document, line: int, settings: Mapping[str, Any], *, role: str = "log") -> int:
    """Add the settings that were printed at `line` and are not known yet; return how many were given."""
    return add_settings(_Placed(out, document, line), dict(settings), role=role, line=line)

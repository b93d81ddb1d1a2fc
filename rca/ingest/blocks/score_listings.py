"""Results that an evaluation lists one a line: a name, blanks, a number."""

from __future__ import annotations

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import claim, table_lines
from rca.ingest.logs.document import Document

_ROW = re2.compile(r"^\s{1,12}([A-Za-z][\w.@/-]{1,40})\s*[:=]?\s{1,40}(\d{1,4}\.\d{2,8})\s*%?\s*$")
_FEWEST = 3
"""Rows that make a listing; fewer may be a message."""
_MOST_ROWS = 80
_ABOVE, _HEADING = 2, 160
"""Lines above a listing, and their last characters, that tell of what it lists the results."""


class ScoreListingParser:
    """Adds `listed.<name>` for each row, with the line where its listing starts and what stands above it."""

    name = "score listing"
    triggers: tuple[str, ...] = (r"^\s{1,12}[A-Za-z][\w.@/-]{1,40}\s*[:=]?\s{1,40}\d{1,4}\.\d{2,8}\s*%?\s*$",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read rows in a row; return `line` where they are too few."""
        found: list[tuple[int, str, float]] = []
        for row in table_lines(document, line, most=_MOST_ROWS):
            match = _ROW.search(row.text)
            if match is None:
                break
            found.append((row.number, match[1].lower(), float(match[2])))
        if len(found) < _FEWEST:
            return line
        heading = " ".join(document.raw(place).strip() for place in range(max(1, line - _ABOVE), line))[-_HEADING:]
        for number, name, value in found:
            out.add(
                kind="metric",
                name=f"listed.{name}",
                line=number,
                offset=document.offset(number),
                time=document.time(number),
                phase="eval",
                value=value,
                attrs={"listing": line, "heading": heading},
            )
        return claim(document, line, found[-1][0] + 1)

"""Listings of a weight file: one parameter and one number a line, as scripts print that check what training changed."""

from __future__ import annotations

import re

from rca.events import EventBuilder
from rca.ingest.blocks.lines import claim, table_line
from rca.ingest.logs.document import Document
from rca.ingest.settings.described import PARAMETER, is_parameter
from rca.ingest.training_metrics.pairs import NUMBER

_LINE = re.compile(
    rf"\s{{0,8}}['\"]?(?P<name>{PARAMETER.pattern})['\"]?\s{{0,8}}[,:=|\s]\s{{0,40}}"
    rf"(?:tensor\()?(?P<value>{NUMBER})(?:, ?device='[\w:]{{1,12}}')?\)?(?:,\s{{0,4}}{NUMBER}){{0,4}}\s*"
)
_HEAD = r"^\s{0,8}['\x22]?[A-Za-z_]\w*(?:\.\w+)*\.(?:weight|bias|alpha|lora_\w+)['\x22]?\s*[:=|\s]?"
_LARGEST = 400
_FEWEST = 3
_MOST = 20_000
_EXACT = re.compile(r"[-+]?0(?:\.0?|\.0{6,}|\.0{1,8}e[-+]?\d{1,3})?", re.I)
"""How an exact zero is printed: `0.0` by Python, or with so many digits that nothing is rounded to it."""


class ParameterListingParser:
    """Adds one `model.parameter` with a `magnitude` a line, where three lines or more follow each other."""

    name = "parameter listing"
    triggers: tuple[str, ...] = (
        rf"{_HEAD},?\s*(?:tensor\()?[-+]?\d\S*(?: device=\S+)?\s*$",
        rf"{_HEAD}(?:,\s*[-+]?\d[^\s,]*){{2,5}}\s*$",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the lines from `line` on that are a parameter and numbers, the first of which says how large it is."""
        rows: list[tuple[int, str, float]] = []
        end = line
        for place in range(line, min(line + _MOST, len(document) + 1)):
            found = _LINE.fullmatch(table_line(document, place)[:_LARGEST])
            if found is None or not is_parameter(found["name"]):
                break
            end = place + 1
            value = float(found["value"].replace(",", ""))
            # A rounded zero is no zero: such a row tells nothing.
            if value or _EXACT.fullmatch(found["value"]):
                rows.append((place, found["name"], value))
        if end - line < _FEWEST:
            return line
        for place, name, value in rows:
            attrs = {"name": name[:200], "magnitude": value}
            rank, offset = document.prefix(place).rank, document.offset(place)
            out.add(kind="artifact", name="model.parameter", line=place, offset=offset, rank=rank, attrs=attrs)
        return claim(document, line, end)

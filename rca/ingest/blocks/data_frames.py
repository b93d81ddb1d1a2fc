"""Columns of a pandas table and how many of their values are missing: `df.info()` and `df.isnull().sum()`."""

from __future__ import annotations

import re

from rca.events import EventBuilder
from rca.ingest.blocks.lines import claim, place_of, table_lines
from rca.ingest.logs.document import Document

_INFO = re.compile(r"\s*\w*Index: (?P<rows>[\d,]{1,16}) entries\b")
_COLUMN = re.compile(r"\s*(?:\d{1,5}\s+)?(?P<name>\S.{0,120}?)\s+(?P<count>\d{1,12}) non-null(?:\s+\S+)?\s*$")
_SUMS = re.compile(
    r"(?:.{0,60}\bis(?:na|null)\(\)\.sum\(\).{0,20}|\W{0,8}(?:(?:number|count|no\.?) of )?(?:missing|null|nan)\b"
    r"[\w /-]{0,40}\W{0,4})$",
    re.I,
)
_SUM = re.compile(r"\s*(?P<name>\S.{0,120}?)\s{2,}(?P<missing>\d{1,12})\s*$")
_END = re.compile(r"\s*dtypes?: ")


class DataFrameParser:
    """Adds one `data.column` with its missing values for each column that is listed."""

    name = "data frame"
    triggers: tuple[str, ...] = (
        r"^\s*\w*Index: [\d,]+ entries\b",
        r"(?i)\bis(?:na|null)\(\)\.sum\(\)",
        r"(?i)^\W*(?:(?:number|count|no\.?) of )?(?:missing|null|nan)\b[\w /-]{0,40}\W*$",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the list that begins here; return the line behind it, or `line` where there is none."""
        lines = list(table_lines(document, line))
        head = _INFO.match(lines[0].text) if lines else None
        if head is None and (not lines or _SUMS.match(lines[0].text.strip()) is None):
            return line
        rows = int(head["rows"].replace(",", "")) if head is not None else None
        pattern = _COLUMN if head is not None else _SUM
        found = []
        for item in lines[1:]:
            if _END.match(item.text):
                break
            if (column := pattern.match(item.text)) is not None:
                missing = rows - int(column["count"]) if rows is not None else int(column["missing"])
                found.append((item.number, column["name"], missing))
            elif found:
                return line
        else:
            return line
        for number, name, missing in found:
            attrs = {"name": name, "missing": missing, "rows": rows}
            out.add(kind="artifact", name="data.column", **place_of(document, number), attrs=attrs)
        return claim(document, line, item.number + 1) if found else line

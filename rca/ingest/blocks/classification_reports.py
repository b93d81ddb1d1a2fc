"""Classification reports of scikit-learn and seqeval: precision, recall and F1 of each class with its support."""

from __future__ import annotations

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import claim, table_lines
from rca.ingest.logs.document import Document

_HEADER = re2.compile(r"^\s*precision\s+recall\s+f1-?score\s+support\s*$")
_ROW = re2.compile(r"^\s*(\S.{0,60}?)\s+((?:[01]\.\d{2,6}\s+){1,3})(\d{1,10})\s*$")
_MOST_ROWS = 400


class ClassificationReportParser:
    """Adds `report.f1` with the class and its support as labels; averages are rows like any other."""

    name = "classification report"
    triggers: tuple[str, ...] = (r"^\s*precision\s+recall\s+f1-?score\s+support\s*$",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows below the header; the line `accuracy` has one number instead of three."""
        rows = table_lines(document, line, most=_MOST_ROWS)
        head = next(rows, None)
        if head is None or not _HEADER.search(head.text):
            return line
        end = line
        for row in rows:
            if not row.text.strip():
                continue
            match = _ROW.search(row.text)
            if match is None:
                break
            values = match[2].split()
            out.add(
                kind="metric",
                name="report.f1" if len(values) == 3 else "report.accuracy",
                line=row.number,
                offset=document.offset(row.number),
                time=document.time(row.number),
                phase="eval",
                value=float(values[-1]),
                attrs={"label": match[1].strip(), "support": int(match[3]), "report": line},
            )
            end = row.number + 1
        return claim(document, line, end) if end > line else line

"""Tables of scores that evaluation scripts print: one row a model, one column a benchmark."""

from __future__ import annotations

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import claim, place_of, table_lines
from rca.ingest.logs.document import Document
from rca.ingest.tables.cells import number

_BENCHMARK = (
    r"(?:wer|cer|acc(?:uracy)?|top-?1|f1|m?ap|m?iou|dice|auc|auroc|bleu|rouge\w*|ppl|perplexity|mmlu|gsm8k|hellaswag|arc|"
    r"winogrande|truthfulqa|humaneval|mbpp|pass@1|psnr|ssim|score|exact[ _-]match|em|rmse|mae)"
)
_HEADER = re2.compile(rf"(?i)\|.*\b{_BENCHMARK}\b.*\|")
_RULE = re2.compile(r"^[\s|:+=-]*$")
_MOST_ROWS = 60
_MOST_COLUMNS = 24


class ScoreTableParser:
    """Adds `score.<column>` with the first cell of the row as its label."""

    name = "score table"
    triggers: tuple[str, ...] = (rf"(?i)^\s*\|[^|]*\|.*\b{_BENCHMARK}\b[^|]*\|",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read a table drawn with strokes; at least one row with a number makes it one."""
        rows = table_lines(document, line, most=_MOST_ROWS, ruled=True)
        head = next(rows, None)
        if head is None or not _HEADER.search(head.text):
            return line
        names = _cells(head.text)[:_MOST_COLUMNS]
        end = line
        for row in rows:
            cells = _cells(row.text)
            if _RULE.search(row.text) and row.text.strip():
                continue
            if len(cells) != len(names):
                break
            values = [number(cell.rstrip("%").strip()) for cell in cells[1:]]
            if not any(value is not None for value in values):
                break
            for column, value in zip(names[1:], values, strict=True):
                if value is not None and column:
                    out.add(
                        kind="metric",
                        name=f"score.{column.lower()}",
                        line=row.number,
                        offset=document.offset(row.number),
                        time=document.time(row.number),
                        phase="eval",
                        value=value,
                        attrs={"label": cells[0]},
                    )
            end = row.number + 1
        return claim(document, line, end) if end > line else line


class HarnessTableParser:
    """Adds `score.<metric>` with the task as its label, from the table that lm-evaluation-harness prints."""

    name = "harness table"
    triggers: tuple[str, ...] = (r"^\s*\|\s*(?:Tasks|Groups)\s*\|\s*Version\s*\|.*\|\s*Metric\s*\|",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows; a row without a task is another metric of the task above."""
        rows = table_lines(document, line, most=_MOST_ROWS * 20, ruled=True)
        head = next(rows, None)
        names = [name.lower() for name in _cells(head.text)] if head is not None else []
        if "metric" not in names or "value" not in names:
            return line
        end, task = line, ""
        for row in rows:
            if _RULE.search(row.text) and row.text.strip():
                continue
            cells = _cells(row.text)
            if len(cells) != len(names):
                break
            task = cells[0].lstrip("- ").strip() or task
            metric, value = cells[names.index("metric")].lower(), number(cells[names.index("value")])
            if metric and value is not None:
                place = place_of(document, row.number)
                out.add(
                    kind="metric", name=f"score.{metric}", **place, phase="eval", value=value, attrs={"label": task}
                )
            end = row.number + 1
        return claim(document, line, end) if end > line else line


def _cells(text: str) -> list[str]:
    stripped = text.strip()
    return [cell.strip() for cell in stripped.strip("|").split("|")] if stripped.startswith("|") else []

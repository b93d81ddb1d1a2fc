"""Tables of metrics inside a log, one row an epoch: fastai, notebook trainers, rich and Markdown tables."""

from __future__ import annotations

import re

from rca.events import EventBuilder
from rca.ingest.blocks.lines import place_of, table_line
from rca.ingest.logs.document import Document
from rca.ingest.metric_units import meaning
from rca.ingest.names import METRIC_NAMES
from rca.ingest.tables.cells import number

_STROKES = re.compile("[┃│║|]")
_RULE = re.compile(r"^[\s|:+=\-┏┓┗┛┡┩┢┪├┤└┘┌┐─━═╇┿┼┬┴╪╞╡┠┨┷┯╍]*$")
_GAP = re.compile(r"\t+| {2,}")
_COUNTERS = frozenset({"epoch", "epochs", "step", "steps", "global step", "global_step", "iter", "iteration", "round"})
_EVALUATED = {"loss": "eval_loss", "accuracy": "eval_accuracy"}
_LOSS = re.compile(r"loss|nll|perplexity|ppl", re.I)
_FEWEST = 3
_MOST_ROWS = 20_000
_LINES = 200_000
_BETWEEN = 400
"""Lines that may stand between two rows: what the loop prints during an epoch."""
_MOST_COLUMNS = 40


class MetricTableParser:
    """Reads a header that starts with a counter and names a loss, and the rows of as many numbers below it."""

    name = "metric table"
    triggers: tuple[str, ...] = (
        r"(?i)^[\s|┃│║]*(?:epochs?|(?:global[ _])?steps?|iter(?:ation)?|round)[\s|┃│║]+"
        r"(?:[^\d:=]|[a-z@]\d{1,2})*(?:loss|nll|perplexity)(?:[^\d:=]|[a-z@]\d{1,2})*$",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Add the columns that are numbers; the rows are claimed, what stands between them stays open to others."""
        head = table_line(document, line, ruled=True)
        names = _cells(head)
        tight = not (_STROKES.search(head) or "\t" in head)
        fewest = _FEWEST if tight else _FEWEST - 1
        if not fewest <= len(names) <= _MOST_COLUMNS or names[0].lower() not in _COUNTERS:
            return line
        if not any(_LOSS.search(name) for name in names[1:]) or any(number(name) is not None for name in names):
            return line
        means = [meaning(name) for name in names]
        validated = any(mean.name == "eval_loss" for mean in means)
        rank, last = document.prefix(line).rank, line
        rows: list[int] = []
        for current in range(line + 1, min(line + _LINES, len(document)) + 1):
            if current - last > _BETWEEN or len(rows) >= _MOST_ROWS:
                break
            if document.prefix(current).rank != rank:
                continue
            text = table_line(document, current, ruled=True)
            cells = text.split() if tight else _cells(text)
            if _RULE.match(text) or len(cells) != len(names):
                continue
            values = [number(cell.rstrip("%")) for cell in cells]
            if values[0] is None or all(value is None for value in values[1:]):
                continue
            last = current
            rows.append(current)
            if names[0].lower().startswith("epoch"):
                _add(out, document, current, name="epoch", step=int(values[0]), value=values[0])
            for mean, value in zip(means[1:], values[1:], strict=True):
                if value is None or not (mean.name in METRIC_NAMES or _LOSS.search(mean.name) or len(mean.name) > 1):
                    continue
                name = _EVALUATED.get(mean.name, mean.name) if validated and mean.name == "accuracy" else mean.name
                _add(out, document, current, name=name, step=int(values[0]), value=value * mean.factor, unit=mean.unit)
        document.claimed.update(rows)
        return line + 1 if rows else line


def _add(
    out: EventBuilder, document: Document, line: int, *, name: str, step: int, value: float, unit: str = ""
) -> None:
    out.add(
        kind="metric",
        name=name,
        **place_of(document, line),
        step=step,
        phase="eval" if name.startswith("eval_") else "train",
        value=value,
        unit=unit or None,
    )


def _cells(text: str) -> list[str]:
    """Return the cells of a line drawn with strokes, tabs or wide gaps; single blanks part names without blanks."""
    plain = _STROKES.sub("|", text.strip())
    if "|" in plain:
        return [cell.strip() for cell in plain.strip("|").split("|")]
    wide = [cell for cell in _GAP.split(plain) if cell]
    return wide if len(wide) >= _FEWEST else plain.split()

"""Rows of metrics that name no step in words: `250 train 6.5021` of small trainers, and the updates of Marian."""

from __future__ import annotations

import re

from rca.events import EventBuilder
from rca.ingest.blocks.lines import claim, place_of, table_line
from rca.ingest.logs.document import Document
from rca.ingest.names import canonical_metric
from rca.ingest.training_metrics.pairs import NUMBER

_ROW = re.compile(rf"(?P<step>\d{{1,9}}) (?P<name>[a-z]\w{{1,30}}) (?P<value>{NUMBER})\s*")
_OF_SPLITS = {"train": "loss", "val": "eval_loss", "valid": "eval_loss", "test": "eval_loss"}
_FEWEST = 3
_MOST = 200_000


_MARIAN = re.compile(
    rf"\bEp\. \d{{1,6}} : Up\. (?P<step>\d{{1,12}}) : .*?\bCost (?P<loss>{NUMBER})(?:.*?: gNorm (?P<norm>{NUMBER}))?"
)


class MarianParser:
    """Reads what Marian prints of an update: `Ep. 1 : Up. 1000 : Sen. 64,000 : Cost 7.12 * 400,000 ... : gNorm 1.2`."""

    name = "Marian updates"
    triggers: tuple[str, ...] = (r"\bEp\. \d+ : Up\. \d+ : ",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Add cost and gradient norm of one line."""
        found = _MARIAN.search(document.prefix(line).message[:1000])
        if found is None:
            return line
        place, step = place_of(document, line), int(found["step"])
        for name, raw in (("loss", found["loss"]), ("grad_norm", found["norm"])):
            if raw is not None:
                value = float(raw.replace(",", ""))
                out.add(kind="metric", name=name, **place, step=step, phase="train", value=value)
        return claim(document, line, line + 1)


class MetricRowParser:
    """Adds a metric a row where three rows or more follow each other; a bare split is the loss on it."""

    name = "metric rows"
    triggers: tuple[str, ...] = (r"^\d{1,9} (?:train|val|valid|test|loss) (?:\d{1,3}\.\d{2,12}|nan|inf)\s*$",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows from `line` on."""
        rows: list[tuple[int, re.Match[str]]] = []
        for place in range(line, min(line + _MOST, len(document)) + 1):
            row = _ROW.fullmatch(table_line(document, place))
            if row is None:
                break
            rows.append((place, row))
        if len(rows) < _FEWEST:
            return line
        for place, row in rows:
            name = _OF_SPLITS.get(row["name"]) or canonical_metric(row["name"])
            phase = "eval" if name.startswith("eval_") else "train"
            value = float(row["value"].replace(",", ""))
            out.add(
                kind="metric", name=name, **place_of(document, place), step=int(row["step"]), phase=phase, value=value
            )
        return claim(document, line, rows[-1][0] + 1)

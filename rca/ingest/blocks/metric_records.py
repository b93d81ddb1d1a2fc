"""Metrics of one step printed over several lines: a line with the counter, and below it indented names and values."""

from __future__ import annotations

import re
from typing import NamedTuple

from rca.events import EventBuilder
from rca.ingest.blocks.lines import place_of, table_line
from rca.ingest.logs.document import Document
from rca.ingest.metric_units import meaning
from rca.ingest.training_metrics.pairs import NUMBER

_COUNTERS = r"step|batch|iter(?:ation)?"
_BRACKETS = re.compile(
    rf"(?:\[epoch=(?P<epoch>\d{{1,9}})\])?\[(?P<eval>Eval )?(?P<counter>{_COUNTERS})=(?P<done>\d{{1,12}})"
    r"(?:/(?P<total>\d{1,12}))?(?:, ?epoch=\d{1,9})?\](?: Eval on [\w./ -]{1,60})?:?\s*$"
)
_CAPTION = re.compile(r"^\s*Learning iteration (?P<done>\d{1,9})/(?P<total>\d{1,9})\s*$")
_ARROW = re.compile(r"^\s*--> (?P<eval>EVAL )?STEP: \d{1,9}(?:/\d{1,9} -- GLOBAL_STEP: (?P<done>\d{1,12}))?\s*$")
_ROW = re.compile(
    r"\s+(?:\| > )?(?:(?P<split>Train|Eval) )?(?P<name>[A-Za-z][\w./ ()%@-]{1,90}?)\s?[=:]\s?"
    rf"(?P<value>{NUMBER}) ?(?P<unit>ms|s|%)?\s*(?:\({NUMBER}\)\s*)?"
)
_RULE = re.compile(r"[-=#\s]*")
_FEWEST = 2
_MOST_ROWS = 400
_NO_METRICS = frozenset({"eta", "total_timesteps", "total_time", "total_steps", "time_elapsed"})
_EVALUATED = {"loss": "eval_loss", "accuracy": "eval_accuracy"}
_TIME = {"ms": 1e-3}


class _Head(NamedTuple):
    step: int | None
    evaluates: bool


class MetricRecordParser:
    """Reads the rows below `[step=20/8000,epoch=0]`, `[epoch=1][batch=20/400]:` and the like.

    OLMo, Composer, RSL-RL and Coqui print so. The line of the counter stays open to the reader of steps.
    """

    name = "metric record"
    triggers: tuple[str, ...] = (
        rf"\[(?:Eval )?(?:{_COUNTERS})=\d+(?:/\d+)?(?:, ?epoch=\d+)?\](?: Eval on [\w./ -]{{1,60}})?:?\s*$",
        r"\bLearning iteration \d+/\d+",
        r"--> (?:EVAL )?STEP: \d+(?:/\d+ -- GLOBAL_STEP: \d+)?\s*$",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Add a metric a row; the rows are claimed."""
        head = _head(document, line)
        if head is None:
            return line
        found: dict[str, tuple[int, float, str | None, bool]] = {}
        rows: list[int] = []
        rank = document.prefix(line).rank
        for current in range(line + 1, min(line + _MOST_ROWS, len(document)) + 1):
            if document.prefix(current).rank != rank:
                continue
            text = table_line(document, current)
            row = _ROW.fullmatch(text)
            if row is None:
                if _RULE.fullmatch(text) is None and not text[:1].isspace():
                    break
                if not text.strip() and rows:
                    break
                continue
            rows.append(current)
            evaluates = head.evaluates or row["split"] == "Eval"
            name, value, unit = _metric(row, evaluates=evaluates)
            if name not in _NO_METRICS:
                found.setdefault(name, (current, value, unit, evaluates))
        if len(rows) < (1 if head.evaluates else _FEWEST):
            return line
        for name, (current, value, unit, evaluates) in found.items():
            phase = "eval" if evaluates or name.startswith("eval_") else "train"
            place = place_of(document, current)
            out.add(kind="metric", name=name, **place, step=head.step, phase=phase, value=value, unit=unit)
        document.claimed.update(rows)
        return line


def _head(document: Document, line: int) -> _Head | None:
    text = document.prefix(line).message
    found = _BRACKETS.search(text)
    if found is not None:
        done = int(found["done"])
        if found["eval"]:
            return _Head(document.step(line), evaluates=True)
        in_epoch = found["epoch"] and found["total"] and found["counter"] != "step"
        return _Head(
            (int(found["epoch"]) - 1) * int(found["total"]) + done if in_epoch and int(found["epoch"]) else done,
            evaluates=False,
        )
    arrow = _ARROW.search(text)
    if arrow is not None:
        last = arrow["done"]
        return _Head(int(last) if last else document.step(line), evaluates=bool(arrow["eval"]) or last is None)
    caption = _CAPTION.search(text)
    return _Head(int(caption["done"]), evaluates=False) if caption is not None else None


def _metric(row: re.Match[str], *, evaluates: bool) -> tuple[str, float, str | None]:
    """Return the common name, the value and the unit of a row."""
    raw = row["name"].strip()
    mean = meaning(raw)
    name = re.sub(r"\s+", "_", mean.name)
    value = float(row["value"].replace(",", "")) * mean.factor * _TIME.get(row["unit"] or "", 1.0)
    return (_EVALUATED.get(name, name) if evaluates else name), value, mean.unit or None

"""Tables with a row a rank and a column a time: what each process computed and how long it waited."""

from __future__ import annotations

import re
from typing import NamedTuple

from rca.events import EventBuilder
from rca.ingest.blocks.lines import place_of, table_line
from rca.ingest.logs.document import Document
from rca.ingest.names import canonical_metric
from rca.ingest.tables.cells import number

_STROKES = re.compile("[┃│║|]")
_RULE = re.compile(r"^[\s|:+=\-┏┓┗┛┡┩┢┪├┤└┘┌┐─━═╇┿┼┬┴╪╞╡┠┨┷┯╍]*$")
_GAP = re.compile(r"\t+| {2,}")
_RANKS = frozenset({"rank", "ranks", "global rank", "global_rank", "gpu", "gpu id", "worker", "process", "proc"})
_TIME = re.compile(
    r"fwd|bwd|forward|backward|comput|\bcomm|wait|sync|all_?reduce|barrier|nccl|data|load|optim|step|iter|batch|total|"
    r"time|latency|idle|h2d|kernel",
    re.I,
)
_NO_TIME = re.compile(r"size|count|calls|bytes|mem|util|%|share|loss|samples|tokens|/s\b|per_s|_id\b|name", re.I)
_UNIT = re.compile(r"\s*[(\[]?\b(?P<unit>ms|us|µs|s|sec|seconds)\b[)\]]?\s*$|_(?P<tail>ms|us|s)$", re.I)
_OF_TABLE = re.compile(r"\b(?P<unit>ms|us|µs|milliseconds|seconds|sec|s)\b", re.I)
_STEP = re.compile(r"\b(?:step|iter(?:ation)?)s?\s{0,3}[:=#]?\s{0,3}(?P<step>\d{1,12})", re.I)
_SECONDS = {"ms": 1e-3, "milliseconds": 1e-3, "us": 1e-6, "µs": 1e-6}
_WHOLE = frozenset({"step", "iter", "iteration", "total", "batch", "step_time", "iter_time", "time"})
_FEWEST_ROWS = 2
_FEWEST_TIMES = 2
_MOST_ROWS = 4096
_ABOVE = 3
"""Lines above the header that may say the step and the unit."""


class _Column(NamedTuple):
    place: int
    name: str
    unit: str | None


class RankTableParser:
    """Adds `table.<column>` for each rank of a table, in seconds: one figure of one rank is a mean over many steps."""

    name = "rank table"
    triggers: tuple[str, ...] = (
        r"(?i)^[\s|┃│║]*(?:(?:global[ _])?ranks?|gpu(?: id)?|worker|proc(?:ess)?)[\s|┃│║]+(?:[^\d]|[a-z]\d)*"
        r"(?:fwd|bwd|forward|backward|comput|comm|wait|sync|time|data|step|\(ms\)|_ms)[^\d]*$",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows below the header; they are claimed."""
        head = table_line(document, line, ruled=True)
        names = _cells(head)
        if len(names) < 1 + _FEWEST_TIMES or names[0].lower() not in _RANKS:
            return line
        columns = [_column(place, name) for place, name in enumerate(names) if place]
        times = [item for item in columns if item is not None]
        caption = " ".join(table_line(document, near) for near in range(max(1, line - _ABOVE), line))
        named = next((item.unit for item in times if item.unit), None)
        stated = _OF_TABLE.search(caption) if named is None else None
        unit = named or (stated["unit"].lower() if stated else None)
        if len(times) < _FEWEST_TIMES or unit is None:
            return line
        rows: list[tuple[int, int, list[str]]] = []
        for current in range(line + 1, min(line + _MOST_ROWS, len(document)) + 1):
            text = table_line(document, current, ruled=True)
            if _RULE.match(text) and text.strip():
                continue
            cells = _cells(text)
            if len(cells) != len(names) or not cells[0].isdigit():
                break
            rows.append((current, int(cells[0]), cells))
        if len({rank for _, rank, _ in rows}) < _FEWEST_ROWS:
            return line
        said = _STEP.search(caption)
        step = int(said["step"]) if said else document.step(line)
        for current, rank, cells in rows:
            for column in times:
                value = number(cells[column.place])
                if value is not None:
                    place = {**place_of(document, current), "rank": rank}
                    seconds = value * _SECONDS.get(column.unit or unit, 1.0)
                    out.add(kind="metric", name=column.name, **place, step=step, phase="train", value=seconds, unit="s")
        document.claimed.update(current for current, _, _ in rows)
        return line + 1


def _column(place: int, raw: str) -> _Column | None:
    """Return a column of times, None for any other."""
    unit = _UNIT.search(raw)
    if not _TIME.search(raw) or _NO_TIME.search(raw):
        return None
    stem = _UNIT.sub("", raw).strip() or raw
    name = canonical_metric(stem)
    name = "step_time" if stem.lower() in _WHOLE else re.sub(r"\s+", "_", name)
    return _Column(place, f"table.{name}", (unit["unit"] or unit["tail"]).lower() if unit else None)


def _cells(text: str) -> list[str]:
    """Return the cells of a line drawn with strokes, tabs, wide gaps or single blanks."""
    plain = _STROKES.sub("|", text.strip())
    if "|" in plain:
        return [cell.strip() for cell in plain.strip("|").split("|")]
    wide = [cell for cell in _GAP.split(plain) if cell]
    return wide if len(wide) > _FEWEST_TIMES else plain.split()

"""Metrics in a box of two columns with the groups as headings, as Stable-Baselines3 prints them after every rollout."""

from __future__ import annotations

import re

from rca.events import EventBuilder
from rca.ingest.blocks.lines import claim, place_of, table_lines
from rca.ingest.logs.document import Document
from rca.ingest.metric_units import meaning
from rca.ingest.tables.cells import number

_GROUP = re.compile(r"\|\s{1,8}(?P<group>\w{1,40})/\s*\|\s*\|\s*")
_ROW = re.compile(r"\|\s{1,8}(?P<name>[A-Za-z][\w ./()-]{0,80}?)\s*\|\s*(?P<value>[-+\w.]{1,24})\s*\|\s*")
_RULE = re.compile(r"\s*-{10,}\s*")
_MOST = 80
_STEPS = ("time/total_timesteps", "time/total timesteps", "time/iterations")


class BoxedMetricsParser:
    """Adds a metric a row, at the number of timesteps that the box states."""

    name = "boxed metrics"
    triggers: tuple[str, ...] = (r"^\s*\|\s{1,8}(?:rollout|train|time|eval)/\s*\|\s*\|\s*$",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read up to the line that closes the box."""
        group, end = "", line
        rows: list[tuple[int, str, float]] = []
        for item in table_lines(document, line, most=_MOST, ruled=True):
            text = item.text.strip()
            if _RULE.fullmatch(text):
                break
            heading, row = _GROUP.fullmatch(text), _ROW.fullmatch(text)
            if heading is not None:
                group = heading["group"]
            elif row is not None:
                value = number(row["value"])
                if value is not None:
                    rows.append((item.number, f"{group}/{row['name']}", value))
            else:
                break
            end = item.number + 1
        if not rows:
            return line
        stated = {name: value for _place, name, value in rows}
        step = next((int(stated[name]) for name in _STEPS if name in stated), None)
        for place, name, value in rows:
            if not name.startswith("time/"):
                mean = meaning(name)
                phase = "eval" if name.startswith("eval/") else "train"
                out.add(
                    kind="metric",
                    name=mean.name,
                    **place_of(document, place),
                    step=step,
                    phase=phase,
                    value=value * mean.factor,
                    unit=mean.unit or None,
                )
        return claim(document, line, end)

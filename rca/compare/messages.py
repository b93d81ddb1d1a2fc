"""What two runs say: messages of both, which a failure cannot be blamed on, and messages of one alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rca.baseline import MessageDifference
from rca.compare.interface import Side
from rca.events import Event
from rca.templates.mine import Mined, Template, message

MORE = 3
"""A message that this run says more than so many times as often as the healthy run counts as its own."""
SHOWN = 40
"""Messages kept of every sort."""
_TEXT = 400
_WRONG = re.compile(
    r"error|exception|traceback|fatal|abort|killed|core dumped|segfault|fail|timed? ?out|denied|refused|unable|cannot"
    r"|corrupt|mismatch|invalid|illegal|out of memory|\bnan\b|\binf\b|overflow|no space|not found|missing",
    re.I,
)
_WORDS = re.compile(r"(?:^|[\s\"'(\[])[A-Za-z]{3}")
"""A template without a word is a rule, a row of a table or a mark under a line of code."""
_WARNING = re.compile(r"warn|deprecat|skipp|retry|slow", re.I)
_Key = tuple[str, str, str]


def said_by_both(run: Side, healthy: Side) -> frozenset[int]:
    """Return the events of `run` whose message the healthy run says about as often, word for word but for numbers."""
    theirs = _by_message(healthy)
    return frozenset(
        event.event_id
        for key, events in _by_message(run).items()
        if key in theirs and _count(events) <= MORE * _count(theirs[key])
        for event in events
    )


def compare_messages(run: Side, healthy: Side, mined: Mapping[str, Mined]) -> tuple[MessageDifference, ...]:
    """Return the signatures and templates of both runs and of each alone; `mined` holds `run` and `healthy`."""
    ours, theirs = mined["run"].templates, mined["healthy"].templates
    here, there = {item.number for item in ours}, {item.number for item in theirs}
    return (
        *_signatures(run, healthy),
        *_templates("new", (item for item in ours if item.number not in there)),
        *_templates("missing", (item for item in theirs if item.number not in here)),
    )


def _by_message(side: Side) -> dict[_Key, list[Event]]:
    found: dict[_Key, list[Event]] = {}
    for event in side.events.events:
        if event.kind in {"log", "exception"}:
            found.setdefault((event.kind, event.name, message(event.text)), []).append(event)
    return found


def _count(events: list[Event]) -> int:
    """How often a message was said: the last event of a source counts those that were not kept."""
    return max(len(events), sum(int(event.attr("count", 0)) for event in events))


def _signatures(run: Side, healthy: Side) -> list[MessageDifference]:
    ours, theirs = (_by_name(side) for side in (run, healthy))
    rows = []
    for name in (*ours, *(name for name in theirs if name not in ours)):
        here, there = ours.get(name, []), theirs.get(name, [])
        shown = (here or there)[0]
        rows.append(
            MessageDifference(
                kind="signature",
                status="both" if here and there else "new" if here else "missing",
                name=name,
                severity=shown.severity or ("error" if shown.kind == "exception" else "info"),
                count=_count(here),
                baseline_count=_count(there),
                text=shown.text[:_TEXT],
                source=shown.source,
                line=shown.line,
            )
        )
    return [row for status in ("new", "both", "missing") for row in _first(rows, status)]


def _first(rows: list[MessageDifference], status: str) -> list[MessageDifference]:
    return [row for row in rows if row.status == status][:SHOWN]


def _by_name(side: Side) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for event in side.events.events:
        if event.kind in {"log", "exception"} and not event.name.startswith("inline."):
            found.setdefault(event.name, []).append(event)
    return found


def _templates(status: str, found: Iterable[Template]) -> list[MessageDifference]:
    """Those that speak of something wrong first, each sort in the order in which it was said."""
    rows = [
        MessageDifference.model_validate(
            {
                "kind": "template",
                "status": status,
                "name": item.text[:_TEXT],
                "severity": severity_of(item.example),
                "count" if status == "new" else "baseline_count": item.count,
                "text": item.example[:_TEXT],
                "source": item.source,
                "line": item.line,
            }
        )
        for item in found
        if _WORDS.search(item.text)
    ]
    return sorted(rows, key=lambda row: ("error", "warning", "info").index(row.severity))[:SHOWN]


def severity_of(text: str) -> str:
    """Return `error`, `warning` or `info` by the words of a line that no signature knows."""
    return "error" if _WRONG.search(text) else "warning" if _WARNING.search(text) else "info"

"""What each rank said about the collective it was waiting in: watchdog timeouts, work states, desync reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from rca.events import Event, EventTable
from rca.facts.failure.roles import owner
from rca.facts.memo import once_per_table

_WORK = r"WorkNCCL\((?:SeqNum=(?P<seq>[0-9]+), )?OpType=(?P<op>[A-Z_0-9]+)(?:, NumelIn=(?P<numel_in>[0-9]+))?"
_PATTERNS = {
    "work": _WORK + r"(?:, NumelOut=(?P<numel_out>[0-9]+))?(?:, Timeout\(ms\)=(?P<timeout_ms>[0-9]+))?",
    "ran": r"ran for (?P<ran_ms>[0-9]+) milliseconds",
    "enqueued": r"last enqueued(?: NCCL)? work: (?P<last_enqueued>-?[0-9]+)",
    "completed": r"last completed(?: NCCL)? work: (?P<last_completed>-?[0-9]+)",
    "group": r"\[PG (?:ID )?(?P<group>[0-9]+)",
    "rank": r"[\[ ]Rank (?P<rank>[0-9]+)\]",
    "lagging": r"that caused the desync are: (?P<lagging>[^\n]{1,400})",
    "barrier": r"Ranks? (?P<missing>[0-9][0-9, ]{0,900}) failed to pass monitoredBarrier",
}
_HOLDS = {
    "work": "WorkNCCL(",
    "ran": "ran for ",
    "enqueued": "last enqueued",
    "completed": "last completed",
    "group": "[PG ",
    "rank": "Rank ",
    "lagging": "caused the desync",
    "barrier": "monitoredBarrier",
}
"""What a text must hold for the pattern to match; a pattern is costly against looking for a few letters."""
_NUMBERS = ("seq", "numel_in", "numel_out", "timeout_ms", "ran_ms", "last_enqueued", "last_completed")


@dataclass(frozen=True)
class Wait:
    """The collective that one rank waited in, in one process group."""

    rank: int
    group: str
    event: Event
    seq: int | None = None
    op: str | None = None
    numel_in: int | None = None
    numel_out: int | None = None
    timeout_ms: int | None = None
    ran_ms: int | None = None
    enqueued: int | None = None
    completed: int | None = None

    @property
    def timed_out(self) -> bool:
        """Whether a timed-out collective was named, and not only the state of the queue."""
        return self.op is not None


@lru_cache(maxsize=1)
def _compiled() -> dict[str, Any]:
    import re2

    return {name: re2.compile(pattern) for name, pattern in _PATTERNS.items()}


def captures(event: Event) -> dict[str, Any]:
    """Return what an event says about a collective: its typed captures, completed from its text."""
    found: dict[str, Any] = {}
    for name, pattern in _compiled().items():
        match = pattern.search(event.text) if _HOLDS[name] in event.text else None
        if match is not None:
            found.update({key: value for key, value in match.groupdict().items() if value is not None})
    typed = {key: value for key, value in (event.attrs or {}).items() if value is not None}
    found.update(
        {key: value for key, value in typed.items() if key in {*_NUMBERS, "rank"} and _whole(value) is not None}
    )
    if isinstance(typed.get("op"), str):
        found["op"] = typed["op"]
    for key in (*_NUMBERS, "rank"):
        if key in found:
            found[key] = _whole(found[key])
    return found


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _concerned(events: EventTable) -> Iterator[Event]:
    for event in events.events:
        if event.kind not in {"log", "exception"} or event.name.startswith("inline."):
            continue
        text = event.text
        if event.name.startswith("nccl.") or "WorkNCCL(" in text or "monitoredBarrier" in text or "enqueued" in text:
            yield event


@once_per_table
def waits(events: EventTable) -> tuple[Wait, ...]:
    """Return the first report of each rank and process group, completed by its later ones."""
    found: dict[tuple[int, str], Wait] = {}
    last_group: dict[int, str] = {}
    for event in _concerned(events):
        said = captures(event)
        rank = said.get("rank") if owner(event) is None else owner(event)
        telling = {"op", "last_enqueued", "last_completed"} & said.keys()
        if rank is None or not telling:
            continue
        group = str(said.get("group", last_group.get(rank, "0")))
        last_group[rank] = group
        known = found.get((rank, group))
        found[rank, group] = _completed(known or Wait(rank=rank, group=group, event=event), said)
    return tuple(sorted(found.values(), key=lambda wait: (wait.group, wait.rank)))


def _completed(wait: Wait, said: dict[str, Any]) -> Wait:
    """Add what was not known yet; a second timeout of the same rank does not replace the first."""
    names = {"last_enqueued": "enqueued", "last_completed": "completed"}
    new = {names.get(key, key): value for key, value in said.items() if key in {*_NUMBERS, "op"} and value is not None}
    if wait.op is not None and "op" in new and (new.get("seq"), new["op"]) != (wait.seq, wait.op):
        new = {key: value for key, value in new.items() if key in {"enqueued", "completed"}}
    return replace(wait, **{key: value for key, value in new.items() if getattr(wait, key) is None})


def named_ranks(events: EventTable, which: str) -> tuple[tuple[int, ...], Event] | None:
    """Return the ranks that a desync report (`lagging`) or a monitored barrier (`missing`) names, and who says so."""
    for event in events.events:
        if event.kind not in {"log", "exception"} or event.name.startswith("inline."):
            continue
        if "desync" not in event.name and "desync" not in event.text and "monitoredBarrier" not in event.text:
            continue
        captured = event.attr("ranks") if which == "lagging" and event.name.startswith("nccl.desync") else None
        text = captured if isinstance(captured, str) else str(captures_text(event).get(which) or "")
        ranks = _listed(text)
        if ranks:
            return ranks, event
    return None


def captures_text(event: Event) -> dict[str, str]:
    """Return the rank lists in the text of an event."""
    found: dict[str, str] = {}
    if "desync" in event.text or "monitoredBarrier" in event.text:
        for name in ("lagging", "barrier"):
            match = _compiled()[name].search(event.text)
            if match is not None:
                found.update(match.groupdict())
    return found


def _listed(text: str) -> tuple[int, ...]:
    """Read `[1, 3]` or `1, 3`; a desync text continues with words, so only its first bracket counts."""
    inner = text.split("]", 1)[0].lstrip("[ ")
    parts = [part.strip() for part in inner.split(",")]
    return tuple(int(part) for part in parts if part.isdigit() and len(part) < 9)

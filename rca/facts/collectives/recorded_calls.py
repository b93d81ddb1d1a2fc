"""What flight recorders kept, rank by rank and process group by process group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rca.events import Event, EventTable
from rca.facts.memo import once_per_table
from rca.recording import Call, Recording, read_ranks, unpack

DEFAULT = "default_pg"
"""Description that PyTorch gives to the group of all ranks."""


@dataclass(frozen=True)
class Recorded:
    """One process group as one rank recorded it."""

    rank: int
    event: Event
    recording: Recording
    overwritten: bool
    """The ring was full, so older entries are gone."""

    @property
    def pending(self) -> int | None:
        """Sequence number of the oldest collective that is not over."""
        value = self.event.attr("pending")
        return value if isinstance(value, int) else None

    @property
    def last(self) -> int | None:
        """Newest sequence number."""
        return self.recording.seq[-1] if self.recording.seq else None

    def call_at(self, seq: int | None) -> Call | None:
        """Return the collective of that sequence number."""
        if seq is None or seq not in self.recording.seq:
            return None
        return self.recording.calls[self.recording.call[self.recording.seq.index(seq)]]


@dataclass(frozen=True)
class Group:
    """One process group over all ranks whose dumps are here."""

    name: str
    description: str
    members: tuple[int, ...]
    """Global ranks in the order of the group; empty where no dump tells them."""
    by_rank: Mapping[int, Recorded]

    @property
    def title(self) -> str:
        """How the group is spoken of."""
        if self.description == DEFAULT or (not self.description and self.name == "0"):
            return "the default group"
        return f"group {self.description or self.name}" + (f" ({self.name})" if self.description else "")


@once_per_table
def dumps(events: EventTable) -> Mapping[int, Event]:
    """Return the newest dump of each rank that is not empty."""
    latest: dict[str, float] = {}
    for event in events.named("collective.recording", kind="system"):
        latest[event.source] = max(latest.get(event.source, 0.0), _number(event.attr("latest_us")))
    found: dict[int, Event] = {}
    for event in events.named("collective.dump", kind="system"):
        if event.rank is None or event.attr("status") != "ok":
            continue
        known = found.get(event.rank)
        if known is None or latest.get(event.source, 0.0) > latest.get(known.source, 0.0):
            found[event.rank] = event
    return found


@once_per_table
def groups(events: EventTable) -> tuple[Group, ...]:
    """Return the process groups of the job. Groups of one name with other members are different groups."""
    chosen = {event.source: event for event in dumps(events).values()}
    found: dict[tuple[str, str], dict[tuple[int, ...], dict[int, Recorded]]] = {}
    for event in events.named("collective.recording", kind="system"):
        dump = chosen.get(event.source)
        packed = event.attr("entries")
        recording = _unpacked(packed) if isinstance(packed, str) else None
        if dump is None or event.rank is None or recording is None:
            continue
        key = (str(event.attr("group", "")), str(event.attr("description", "")))
        members = _members(event.attr("ranks"))
        recorded = Recorded(event.rank, event, recording, dump.attr("overwritten") is True)
        found.setdefault(key, {}).setdefault(members, {})[event.rank] = recorded
    return tuple(
        Group(name, description, members, by_rank)
        for (name, description), sets in sorted(found.items())
        for members, by_rank in _told(sets).items()
    )


def _told(sets: Mapping[tuple[int, ...], dict[int, Recorded]]) -> Mapping[tuple[int, ...], dict[int, Recorded]]:
    """Give dumps that do not tell the members of a group to the set of members that names their rank."""
    known = {members: dict(by_rank) for members, by_rank in sets.items() if members}
    for rank, recorded in sets.get((), {}).items():
        fitting = next((members for members in known if rank in members), ())
        known.setdefault(fitting, {})[rank] = recorded
    return known


@lru_cache(maxsize=4096)
def _members(text: Any) -> tuple[int, ...]:
    return read_ranks(text)


@lru_cache(maxsize=65_536)
def _one(call: Call) -> Call:
    return call


@lru_cache(maxsize=256)
def _unpacked(packed: str) -> Recording | None:
    """Read a recording. Thousands of ranks make the same calls, so equal ones are kept once, and so is each call."""
    recording = unpack(packed)
    return None if recording is None else recording._replace(calls=tuple(_one(call) for call in recording.calls))


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0

"""What is known of each of the two runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rca.events import EventTable
from rca.facts.interface import Fact
from rca.ingest.interface import Source


@dataclass(frozen=True)
class Side:
    """One of the two runs."""

    name: str
    path: str
    events: EventTable
    facts: Mapping[str, Fact]
    logs: Sequence[Source] = ()
    """Sources that hold log text."""
    files: int = 0
    doubts: tuple[str, ...] = ()
    """Why this run is no good to compare with, one sentence each."""

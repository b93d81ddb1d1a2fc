"""What is sent to a ticket, and what a service for tickets is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Attachment:
    """A file that goes with the comment."""

    name: str
    data: bytes
    media_type: str


@dataclass(frozen=True)
class Letter:
    """One report, as it leaves the machine."""

    mark: str
    """Id by which a later run finds its own comment: the same for every report on the same run."""
    subject: str
    markdown: str
    wiki: str
    """The same text in Jira's markup."""
    page: Attachment
    page_label: str
    """What stands before a link to the page."""
    data: str
    """The diagnosis as JSON."""


@dataclass(frozen=True)
class Plan:
    """What would be sent, word for word."""

    where: str
    body: str
    attachment: Attachment | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Receipt:
    """What was done."""

    where: str
    """Address of the comment, or of what took the message."""
    updated: bool = False
    """An earlier comment of the same run was replaced."""
    notes: tuple[str, ...] = ()


class Service(Protocol):
    """One place where incidents are discussed."""

    def plan(self, letter: Letter) -> Plan:
        """Return what `send` would send; nothing is asked of the network."""

    def send(self, letter: Letter) -> Receipt:
        """Send it. Raises TicketError with what went wrong; what was there before is still there then."""

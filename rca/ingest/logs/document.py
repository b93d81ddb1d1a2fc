"""One text source as lines with their prefixes taken apart, and what a block parser is."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from rca.events import EventBuilder


class Prefix(NamedTuple):
    """What stands in front of the message of one line."""

    message: str
    """The line without ANSI colours, rank, time and logger prefix."""
    rank: int | None = None
    host: str | None = None
    time: int | None = None
    """Microseconds since the epoch, UTC."""
    level: str | None = None
    """One of rca.events.SEVERITIES, if the line states one."""


class Document(Protocol):
    """One text source: read line by line, every line cheap to look at again."""

    path: str
    """Relative path of the source."""
    silent: set[int]
    """Lines of source code and file names inside a traceback, on which a signature would be an accident."""
    claimed: set[int]
    """Lines that a block has read although others have lines in between; no other block looks at them."""
    told: set[tuple[str, str]]
    """Settings that were already added, as (name, text): sixty-four ranks print the same ones."""

    def __len__(self) -> int:
        """Return the number of lines."""

    def raw(self, line: int) -> str:
        """Return the 1-based line as it stands: decoded, no colours, last state of a carriage-return progress bar."""

    def prefix(self, line: int) -> Prefix:
        """Return the line with its prefix taken apart."""

    def offset(self, line: int) -> int:
        """Return the byte offset of the line in the decompressed source."""

    def step(self, line: int) -> int | None:
        """Return the last optimizer step printed at or before the line."""

    def time(self, line: int) -> int | None:
        """Return the last wall-clock time printed at or before the line."""

    def phase(self, line: int) -> str | None:
        """Return the phase of the job that was last told at or before the line."""

    def first_local_rank(self) -> int:
        """Return the global rank of local rank 0 on the node that wrote the source, as far as it tells; else 0."""


class BlockParser(Protocol):
    """Reads what spans several lines, or what needs more than one pattern: a traceback, a table, a metrics line."""

    name: str
    triggers: tuple[str, ...]
    """RE2 patterns; `parse` is called at every line that one of them matches and that no earlier block consumed."""

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Add the events of the block that starts at `line`; return the first line after it (> line)."""

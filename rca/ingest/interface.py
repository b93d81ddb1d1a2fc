"""What an ingestor is: files in, event tables out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Literal, Protocol

from rca.rules.schema import Signature

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Limits:
    """Caps that keep hostile or huge input bounded; what is cut is said in the report."""

    line_bytes: int = 64 * 1024
    """Longer lines are cut to this length for matching."""
    source_bytes: int = 4 * 1024**3
    """Bytes read of one source after decompression."""
    plain_bytes: int = 256 * 1024**3
    """Bytes read of one log that lies there uncompressed: nothing of it is kept, so only time limits it."""
    files: int = 20_000
    """Files looked at in one run directory."""
    events_per_source: int = 200_000
    """Events kept of one source, metrics excepted."""
    repeats_per_signature: int = 200
    """Events kept of one signature in one source; further ones are only counted (first and last are always kept)."""


class Entry(Protocol):
    """What a file system says about a file."""

    @property
    def st_mode(self) -> int:
        """Kind of the file, as `os.stat` gives it."""

    @property
    def st_size(self) -> int:
        """Bytes."""


class Place(Protocol):
    """Where the bytes of a file lie: a local path, a member of an archive, an object of a remote store.

    Local paths and those of universal-pathlib have this shape. All of it raises OSError as a local path does.
    """

    def __hash__(self) -> int:
        """Equal places are one place."""

    @property
    def name(self) -> str:
        """Name of the file."""

    @property
    def parent(self) -> Place:
        """Folder that holds it."""

    def __truediv__(self, name: str, /) -> Place:
        """Return what lies below a folder."""

    def iterdir(self) -> Iterator[Place]:
        """List a folder."""

    def lstat(self) -> Entry:
        """Describe the file itself, not what a link leads to."""

    def open(self, mode: Literal["rb"], /) -> IO[bytes]:
        """Open for reading, as a stream that can seek."""


@dataclass(frozen=True)
class Source:
    """One file of the run directory."""

    path: str
    """Path relative to the run directory, with forward slashes."""
    file: Place
    size: int
    """Bytes as stored."""
    rank: int | None = None
    """Global rank read off the path (`rank_3.log`), if any."""
    host: str | None = None
    """Node read off the path (`node_2.out`), if any."""
    known_time: int | None = None
    """A complete time (microseconds since the epoch) that some source of the run prints: it gives the year to times
    that lack it."""
    one_of_many: int = 0
    """How many sources are so alike that each keeps only its own (see `rca.ingest.places.shares`); 0: it keeps all."""


@dataclass(frozen=True)
class Ingested:
    """What one ingestor made of one source."""

    events: pa.Table
    """Table of `rca.events.SCHEMA`."""
    lines: int = 0
    """Text lines or binary records read."""
    bytes: int = 0
    """Decompressed bytes read."""
    text: bool = False
    """Whether this was log text, so that a silent signature means "no" and not "no data"."""
    first_time: int | None = None
    last_time: int | None = None
    """Microseconds since the epoch, UTC."""
    warnings: tuple[str, ...] = ()
    """What was cut, truncated or recovered, one sentence each."""


@dataclass(frozen=True)
class IngestContext:
    """What every ingestor may need, prepared once per analysis."""

    signatures: Sequence[Signature] = ()
    limits: Limits = field(default_factory=Limits)
    told: Callable[[int], None] | None = None
    """Told, by readers of what may be large, how many bytes of the source were read."""


class Ingestor(Protocol):
    """One file format."""

    name: str
    """Shown in the report as the kind of the source."""

    def accepts(self, source: Source, head: bytes) -> bool:
        """Say whether this reader is for that file; `head` holds its first 4096 decompressed bytes."""

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read the file. Raises UnreadableSource with the reason where nothing can be kept."""

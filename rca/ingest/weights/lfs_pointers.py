"""Git LFS pointers that stand where a large file should: a few lines of text with the hash and size of the real one."""

from __future__ import annotations

from typing import NamedTuple

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.tables.cells import whole
from rca.ingest.tables.structured import read_bounded

_START = b"version https://git-lfs.github.com/spec/"
_MAX_POINTER = 1024
"""Bytes that a pointer has at most (git-lfs specification)."""


class Pointer(NamedTuple):
    """What a pointer says of the file it stands for."""

    oid: str
    size: int | None


def pointer_of(data: bytes) -> Pointer | None:
    """Return the pointer that a small file is, or None."""
    if not data.startswith(_START) or len(data) > _MAX_POINTER:
        return None
    fields = dict(line.split(" ", 1) for line in data.decode("ascii", "replace").splitlines() if " " in line)
    size = fields.get("size", "").strip()
    return Pointer(fields.get("oid", "").strip()[:100], whole(size))


class LfsPointerIngestor:
    """Reads a pointer into one artifact event: the real file was never downloaded."""

    name = "git-lfs pointer"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take any small file that starts like a pointer, whatever its name."""
        return source.size <= _MAX_POINTER and head.startswith(_START)

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read the pointer."""
        data, _cut, notes = read_bounded(source, context, _MAX_POINTER)
        pointer = pointer_of(data)
        if pointer is None:
            raise UnreadableSource(f"{source.path} starts like a git-lfs pointer but is none.")
        out = EventBuilder(source.path)
        name = source.path.rsplit("/", 1)[-1]
        out.add(
            kind="artifact",
            name="weights.lfs_pointer",
            line=1,
            offset=0,
            severity="error",
            text=f"{name} is a git-lfs pointer of {source.size} bytes, not the file",
            attrs={"file": name, "oid": pointer.oid, "size": source.size, "expected_size": pointer.size},
        )
        return Ingested(out.build(), lines=3, bytes=len(data), warnings=notes)

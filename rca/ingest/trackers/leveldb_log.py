"""The log format of LevelDB as W&B writes it: whole records out of blocks of 32 KiB, damaged ones passed over.

A block holds fragments of `crc32 (4) | length (2) | type (1) | data`; a record is one full fragment, or a first one,
any number of middle ones and a last one. A W&B file puts seven bytes of its own in front, and takes the ordinary crc32
(IEEE) of type and data where LevelDB takes a masked crc32c.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import IO, NamedTuple

BLOCK = 32 << 10
_HEAD = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_MAX_RECORD = 64 << 20
_MAX_FRAGMENTS = 1 << 16
"""Fragments of one record: of ordinary ones, a record of 64 MiB has 2,048."""
MAX_DAMAGES = 10_000
"""Damaged places after which the rest is not read."""


class Record(NamedTuple):
    """One whole record, or a place where one was lost."""

    offset: int
    """Byte of the file at which its first fragment begins."""
    data: bytes
    damage: str = ""
    """Why bytes were passed over there; empty for a whole record."""


def read_records(stream: IO[bytes], *, skip: int, limit: int) -> Iterator[Record]:
    """Read the records of at most `limit` bytes, of which the first `skip` are no record. Never raises for bad content.

    What follows a damaged fragment in its block is lost; the next block is read again.
    """
    damages = 0
    for record in _all_records(stream, skip=skip, limit=limit):
        damages += bool(record.damage)
        if damages > MAX_DAMAGES:
            yield Record(record.offset, b"", f"the reading stopped after {MAX_DAMAGES:,} damaged places")
            return
        yield record


def _all_records(stream: IO[bytes], *, skip: int, limit: int) -> Iterator[Record]:
    pending: list[bytes] = []
    size = offset = begun = 0
    while offset < limit and (block := stream.read(min(BLOCK, limit - offset))):
        place = skip if offset == 0 else 0
        while place + _HEAD.size <= len(block):
            checksum, length, kind = _HEAD.unpack_from(block, place)
            if kind == 0 and length == 0:
                break
            here, begin = offset + place, place + _HEAD.size
            data = block[begin : begin + length]
            whole = len(data) == length
            if not whole or kind > _LAST or zlib.crc32(data, zlib.crc32(bytes([kind]))) != checksum:
                cut = not whole and len(block) < BLOCK
                yield Record(here, b"", "a record is not complete" if cut else "a record does not fit its checksum")
                pending = []
                break
            if kind in {_FULL, _FIRST}:
                if pending:
                    yield Record(begun, b"", "a record is not complete")
                pending, size, begun = [], 0, here
            elif not pending:
                place = begin + length
                continue
            pending.append(data)
            size += length
            if kind in {_FULL, _LAST}:
                yield Record(begun, b"".join(pending))
                pending = []
            elif size > _MAX_RECORD or len(pending) > _MAX_FRAGMENTS:
                what = "over 64 MiB" if size > _MAX_RECORD else "of too many parts"
                yield Record(begun, b"", f"a record {what} was passed over")
                pending = []
            place = begin + length
        offset += len(block)
    if pending:
        yield Record(begun, b"", "a record is not complete")

"""TFRecord framing: where each record of a file begins, and what is damaged between them.

A record is `length (8 bytes) | masked crc32c of the length (4) | payload | masked crc32c of the payload (4)`.
The length has a checksum of its own, so after damage the next record is found where 12 bytes agree with each other.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

HEADER = 12
"""Bytes before the payload."""
FOOTER = 4
"""Bytes after it."""
MAX_DAMAGES = 1000
"""Damaged places after which the rest of a file is given up: finding the next record costs time."""

_BLOCK = 8 << 20
_MAX_RECORD = 64 << 20
_MAX_CHECKED = 16 << 10
_FIRST_WINDOW = 4 << 10
_LENGTH = struct.Struct("<Q")
_HEADER = struct.Struct("<QI")


class Damage(NamedTuple):
    """A place where bytes could not be read as a record."""

    offset: int
    """Byte offset in the file."""
    size: int
    """Bytes that were passed over."""
    reason: str


@dataclass
class Block:
    """A piece of the file together with the whole records in it."""

    data: bytes
    offset: int
    """Byte offset of `data` in the file."""
    start: npt.NDArray[np.int64]
    """Where the payloads begin in `data`."""
    length: npt.NDArray[np.int64]
    damages: list[Damage] = field(default_factory=list)


def _tables() -> npt.NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1).astype(np.uint32)
    return table


_TABLE = _tables()
_PLAIN_TABLE = tuple(_TABLE.tolist())
_MASK_DELTA = 0xA282EAD8


def _masked(crc: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    crc = ~crc
    return ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(_MASK_DELTA)


def masked_crc32c(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    """Return the masked crc32c of each row (all of one length), as TFRecord files store it."""
    crc = np.full(len(rows), 0xFFFFFFFF, dtype=np.uint32)
    for column in np.ascontiguousarray(rows.T):
        crc = _TABLE[(crc ^ column) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
    return _masked(crc)


def starts_with_record(head: bytes) -> bool:
    """Say whether the bytes begin with a record header whose checksum agrees with its length."""
    return len(head) >= HEADER and len(_agreeing(np.frombuffer(head[:HEADER], np.uint8))) == 1


def _agreeing(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Return the offsets at which 12 bytes look like a record header: a length under 4 GiB and its checksum."""
    count = len(data) - HEADER + 1
    if count <= 0:
        return np.empty(0, dtype=np.int64)
    high = (data[4 : 4 + count] | data[5 : 5 + count] | data[6 : 6 + count] | data[7 : 7 + count]) == 0
    at = np.flatnonzero(high)
    header = data[at[:, None] + np.arange(HEADER)]
    stored = np.ascontiguousarray(header[:, 8:]).view("<u4").ravel()
    agree: npt.NDArray[np.int64] = at[masked_crc32c(header[:, :8]) == stored]
    return agree


def _find_record(data: bytes, position: int) -> int | None:
    """Return the offset of the next plausible record header at or after `position`, looking in growing windows."""
    window = _FIRST_WINDOW
    while position + HEADER <= len(data):
        found = _agreeing(np.frombuffer(data, np.uint8, min(window, len(data) - position), position))
        if len(found):
            return position + int(found[0])
        position += max(window - HEADER + 1, 1)
        window = min(window * 4, _BLOCK)
    return None


class _LengthChecksums(dict[int, int]):
    """Length -> its masked checksum; a file has few distinct lengths, so nearly every look-up hits."""

    def __missing__(self, length: int) -> int:
        crc = 0xFFFFFFFF
        for byte in _LENGTH.pack(length):
            crc = _PLAIN_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
        crc ^= 0xFFFFFFFF
        masked = (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF
        if len(self) < 1 << 16:
            self[length] = masked
        return masked


def payload_agrees(data: bytes, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Say of each record whether its payload has the stored checksum; payloads over 16 KiB are taken as they are."""
    raw = np.frombuffer(data, np.uint8)
    agrees = np.ones(len(starts), dtype=bool)
    checked = np.flatnonzero(lengths <= _MAX_CHECKED)
    order = checked[np.argsort(-lengths[checked], kind="stable")]
    start, length = starts[order], lengths[order]
    crc = np.full(len(order), 0xFFFFFFFF, dtype=np.uint32)
    # Sorted by falling length, the records that still have a byte at `column` are always a prefix.
    alive = len(order) - np.searchsorted(length[::-1], np.arange(int(length[0]) if len(length) else 0), side="right")
    for column, count in enumerate(alive.tolist()):
        step = crc[:count]
        crc[:count] = _TABLE[(step ^ raw[start[:count] + column]) & np.uint32(0xFF)] ^ (step >> np.uint32(8))
    stored = np.ascontiguousarray(raw[(start + length)[:, None] + np.arange(FOOTER)]).view("<u4").ravel()
    agrees[order] = _masked(crc) == stored
    return agrees


class _Scanner:
    """State of one pass over a stream: the bytes not used yet, and where reading was lost."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self.stream = stream
        self.left = limit
        self.data = b""
        self.offset = 0
        self.position = 0
        self.ended = False
        self.lost_since: int | None = None
        self.lost_because = ""
        self.places = 0
        self.checksums = _LengthChecksums()

    def refill(self) -> None:
        """Drop what was used and read on."""
        fresh = self.stream.read(min(_BLOCK, self.left)) if self.left > 0 else b""
        self.left -= len(fresh)
        self.ended = not fresh
        self.data, self.offset, self.position = self.data[self.position :] + fresh, self.offset + self.position, 0

    def recover(self) -> Damage | None:
        """Go to the next plausible record; None where these bytes hold none."""
        assert self.lost_since is not None
        found = _find_record(self.data, self.position)
        if found is None:
            self.position = max(self.position, len(self.data) - HEADER + 1)
            return None
        damage = Damage(self.lost_since, self.offset + found - self.lost_since, self.lost_because)
        self.position, self.lost_since = found, None
        self.places += 1
        return damage

    def walk(self, starts: list[int], lengths: list[int]) -> bool:
        """Collect whole records up to the end of the bytes; say whether reading was lost before it."""
        data, position, end = self.data, self.position, len(self.data)
        unpack, checksums = _HEADER.unpack_from, self.checksums
        add_start, add_length = starts.append, lengths.append
        reason = ""
        while position + HEADER <= end:
            length, checksum = unpack(data, position)
            if checksums[length] != checksum:
                reason = "no record could be read"
                break
            following = position + HEADER + length + FOOTER
            if length > _MAX_RECORD or following > end:
                if length > _MAX_RECORD:
                    reason = "a record over 64 MiB was passed over"
                elif self.ended:
                    reason = "a record is not complete"
                break
            add_start(position + HEADER)
            add_length(length)
            position = following
        self.position = position
        if reason:
            self.lost_since, self.lost_because = self.offset + position, reason
            self.position += 1
        return bool(reason)

    def block(self) -> Block:
        """Read all whole records of the bytes at hand."""
        starts: list[int] = []
        lengths: list[int] = []
        damages: list[Damage] = []
        lost = self.lost_since is not None
        while self.places < MAX_DAMAGES:
            if lost:
                damage = self.recover()
                if damage is None:
                    break
                damages.append(damage)
            lost = self.walk(starts, lengths)
            if not lost:
                break
        return Block(self.data, self.offset, np.array(starts, np.int64), np.array(lengths, np.int64), damages)

    def remainder(self) -> Damage | None:
        """Say what is left at the end of the file."""
        end = self.offset + len(self.data)
        if self.places >= MAX_DAMAGES:
            return Damage(self.offset + self.position, 0, f"after {MAX_DAMAGES} damaged places the rest was not read")
        if self.lost_since is not None:
            return Damage(self.lost_since, end - self.lost_since, self.lost_because)
        if self.position < len(self.data):
            return Damage(self.offset + self.position, len(self.data) - self.position, "a record is not complete")
        return None


def read_blocks(stream: IO[bytes], *, limit: int) -> Iterator[Block]:
    """Read a TFRecord stream in bounded memory; yield its whole records and its damages, in order.

    At most `limit` bytes are read. A record over 64 MiB is passed over as a damage. Never raises for bad content.
    """
    scanner = _Scanner(stream, limit)
    while not scanner.ended:
        scanner.refill()
        block = scanner.block()
        if scanner.ended or scanner.places >= MAX_DAMAGES:
            left = scanner.remainder()
            block.damages.extend([left] if left else [])
            yield block
            return
        yield block

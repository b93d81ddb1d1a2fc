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

from rca.ingest.crc32c import length_checksums, masked_one, masked_rows, rows_at, stored_at

if TYPE_CHECKING:
    import numpy.typing as npt

    _Records = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]

HEADER = 12
"""Bytes before the payload."""
FOOTER = 4
"""Bytes after it."""
MAX_DAMAGES = 1000
"""Damaged places after which the rest of a file is given up: finding the next record costs time."""

_BLOCK = 8 << 20
_MAX_RECORD = 64 << 20
_FIRST_WINDOW = 4 << 10
_WINDOW = 1 << 20
_FEWEST = _WINDOW >> 10
"""Records in a window below which one step after the other is as fast."""
_STEPS = 4096
_FEW, _WIDE = 16, 4 << 10
"""Records of one length, and their length, up to which their checksums are worked out one by one."""
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


def starts_with_record(head: bytes) -> bool:
    """Say whether the bytes begin with a record header whose checksum agrees with its length."""
    if head[4:8] != bytes(4):
        return False
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
    agree: npt.NDArray[np.int64] = at[masked_rows(header[:, :8]) == stored]
    return agree


def _chain(data: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return where payloads begin and their lengths, for the whole records that follow each other from the first byte.

    Headers of payloads below 64 KiB are found by their zero bytes and their checksum, all at once.
    """
    count = len(data) - HEADER - FOOTER + 1
    high = data[2 : 2 + count] | data[3 : 3 + count]
    for byte in (4, 5, 6, 7):
        high |= data[byte : byte + count]
    at = np.flatnonzero(high == 0)
    length = data[at].astype(np.int64) | (data[at + 1].astype(np.int64) << 8)
    good = (length_checksums()[length] == stored_at(data, at + 8)) & (length <= _MAX_RECORD)
    good &= at + length + HEADER + FOOTER <= len(data)
    at, length = at[good], length[good]
    if not len(at) or at[0] != 0:
        return at[:0], length[:0]
    broken = np.flatnonzero(at[1:] != (at + length)[:-1] + HEADER + FOOTER)
    last = int(broken[0]) + 1 if len(broken) else len(at)
    return at[:last] + HEADER, length[:last]


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
        masked = masked_one(_LENGTH.pack(length))
        if len(self) < 1 << 16:
            self[length] = masked
        return masked


def payload_agrees(data: bytes, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Say of each record whether its payload has the stored checksum."""
    raw = np.frombuffer(data, np.uint8)
    agrees = np.ones(len(starts), dtype=bool)
    sizes, counts = np.unique(lengths, return_counts=True)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        index = np.flatnonzero(lengths == size)
        if count < _FEW or size > _WIDE:
            for place in index.tolist():
                begin = int(starts[place])
                stored = int.from_bytes(data[begin + size : begin + size + FOOTER], "little")
                agrees[place] = masked_one(data[begin : begin + size]) == stored
        else:
            agrees[index] = masked_rows(rows_at(raw, starts[index], size)) == stored_at(raw, starts[index] + size)
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
        self.short = True
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

    def stride(self, parts: list[_Records]) -> None:
        """Collect short records by the thousand, as far as each header stands where the record before it ends."""
        while len(self.data) - self.position >= HEADER + FOOTER:
            window = np.frombuffer(self.data, np.uint8, min(_WINDOW, len(self.data) - self.position), self.position)
            start, length = _chain(window)
            if len(start):
                parts.append((start + self.position, length))
                self.position += int(start[-1] + length[-1]) + FOOTER
            if len(start) < _FEWEST:
                break

    def walk(self, parts: list[_Records]) -> bool:
        """Collect whole records up to the end of the bytes; say whether reading was lost before it."""
        going, reason = True, ""
        while going and not reason:
            if self.short:
                self.stride(parts)
            going, reason = self.steps(parts)
        if reason:
            self.lost_since, self.lost_because = self.offset + self.position, reason
            self.position += 1
        return bool(reason)

    def steps(self, parts: list[_Records]) -> tuple[bool, str]:
        """Collect a few thousand records one by one; return whether more follow, and why reading was lost."""
        data, position, end = self.data, self.position, len(self.data)
        unpack, checksums = _HEADER.unpack_from, self.checksums
        starts: list[int] = []
        lengths: list[int] = []
        reason = ""
        going = position + HEADER <= end
        while going and len(starts) < _STEPS:
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
                going = False
                break
            starts.append(position + HEADER)
            lengths.append(length)
            position = following
            going = position + HEADER <= end
        self.position = position
        if len(lengths) == _STEPS:
            self.short = sum(lengths) < _STEPS << 10
        parts.append((np.array(starts, np.int64), np.array(lengths, np.int64)))
        return going, reason

    def block(self) -> Block:
        """Read all whole records of the bytes at hand."""
        parts: list[_Records] = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        damages: list[Damage] = []
        lost = self.lost_since is not None
        while self.places < MAX_DAMAGES:
            if lost:
                damage = self.recover()
                if damage is None:
                    break
                damages.append(damage)
            lost = self.walk(parts)
            if not lost:
                break
        start, length = (np.concatenate(column) for column in zip(*parts, strict=True))
        return Block(self.data, self.offset, start, length, damages)

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

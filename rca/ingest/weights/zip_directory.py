"""The end of a zip archive: how large its directory claims to be, before anybody reads it."""

from __future__ import annotations

import struct
from typing import IO

MAX_DIRECTORY = 32 * 1024**2
"""Bytes of a zip directory that is read; a checkpoint of 100,000 tensors needs about 10 MB."""
_TAIL = 65_536 + 22


def directory_size(stream: IO[bytes], size: int) -> int:
    """Return the size that the end of a zip archive of `size` bytes claims for its directory; 0 without an end."""
    stream.seek(max(0, size - _TAIL))
    tail = stream.read(_TAIL)
    long_end, short_end = tail.rfind(b"PK\x06\x06"), tail.rfind(b"PK\x05\x06")
    if long_end >= 0 and len(tail) >= long_end + 48:
        return int(struct.unpack("<Q", tail[long_end + 40 : long_end + 48])[0])
    if short_end >= 0 and len(tail) >= short_end + 16:
        return int(struct.unpack("<I", tail[short_end + 12 : short_end + 16])[0])
    return 0

"""Bytes as files whose checksums, lengths and compression are right: random bytes do not come past those."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator

from rca.ingest.crc32c import masked_one

_BLOCK = 32_768
"""Bytes of one block of a W&B file; no record header crosses its end."""
_HEADER = 7


def sealed(name: str, data: bytes) -> bytes:
    """Return the bytes as the content of such a file; the bytes themselves where no seal is known for the name."""
    return next((seal(data) for ending, seal in _SEALS if ending in name), data)


def _pieces(data: bytes) -> Iterator[bytes]:
    """Cut bytes into records; the first byte of each says how long it is."""
    place = 0
    while place < len(data):
        length = data[place] * 4
        yield data[place + 1 : place + 1 + length]
        place += 1 + length


def _event_file(data: bytes) -> bytes:
    parts: list[bytes] = []
    for piece in _pieces(data):
        length = struct.pack("<Q", len(piece))
        parts += [length, struct.pack("<I", masked_one(length)), piece, struct.pack("<I", masked_one(piece))]
    return b"".join(parts)


def _wandb(data: bytes) -> bytes:
    out = bytearray(b":W&B\x6d\xbe\x00")
    for piece in _pieces(data):
        left, first = piece, True
        while left or first:
            room = _BLOCK - len(out) % _BLOCK
            if room < _HEADER:
                out += bytes(room)
                continue
            part, left = left[: room - _HEADER], left[room - _HEADER :]
            kind = (2 if left else 1) if first else (3 if left else 4)
            out += struct.pack("<IHB", zlib.crc32(part, zlib.crc32(bytes([kind]))), len(part), kind) + part
            first = False
    return bytes(out)


def _safetensors(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data + bytes(64)


def _torch_file(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/version", "3\n")
    return file.getvalue()


_SEALS: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    ("tfevents", _event_file),
    (".wandb", _wandb),
    (".safetensors", _safetensors),
    (".pt", _torch_file),
    (".gz", gzip.compress),
)
"""What a name holds, and how its files are sealed."""

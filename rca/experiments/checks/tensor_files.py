"""safetensors files as bytes: is the file whole, and what do its tensors hold? Read in pieces, nothing is mapped.

The format is a length (8 bytes), a JSON header and the tensors one behind another; the library refuses headers above
100 MB, gaps and overlaps (safetensors/src/tensor.rs). Loads torch.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NamedTuple

import torch

MAX_HEADER = 100_000_000
PIECE = 8 * 2**20
"""Bytes that are read at a time."""
_TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_FLOATS = frozenset({"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"})
_BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U16": 16, "U32": 32, "U64": 64, "F8_E8M0": 8, "C64": 64}
_MATRIX = 1024
"""Elements from which a matrix of zeros is worth a word."""
_ZERO_ON_PURPOSE = ("lora_b", "zero", "mask", "bias", "cache", "running_")
"""Parts of names of tensors that start or stay at zero."""


class Entry(NamedTuple):
    """One tensor of a header; `start` and `end` count from the beginning of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


class Header(NamedTuple):
    """The tensors of a file, and what is wrong with it (empty: nothing)."""

    entries: tuple[Entry, ...] = ()
    problem: str = ""


def read_header(stream: BinaryIO, size: int) -> Header:
    """Read the header of a file of `size` bytes and hold it against that size."""
    head = stream.read(64)
    if size == 0:
        return Header(problem="is empty")
    if head.startswith(b"version https://git-lfs"):
        return Header(problem="is a git-lfs pointer, not the file")
    if head.lstrip()[:1] == b"<":
        return Header(problem="is a web page, not a weight file")
    if size < 8:
        return Header(problem=f"has {size} bytes, too few for a header")
    length = struct.unpack("<Q", head[:8])[0]
    if length > MAX_HEADER:
        return Header(problem=f"announces a header of {length:,} bytes, which no reader accepts")
    if length > size - 8:
        return Header(problem=f"ends inside its header ({size:,} bytes, the header alone needs {8 + length:,})")
    stream.seek(8)
    try:
        entries = tuple(_entries(json.loads(stream.read(length)), 8 + length))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError) as error:
        return Header(problem=f"has a header that cannot be read ({type(error).__name__})")
    return Header(entries, _extent_problem(entries, 8 + length, size))


def _entries(document: Any, data: int) -> Iterator[Entry]:
    for name, item in document.items():
        if name != "__metadata__":
            start, end = (int(part) for part in item["data_offsets"])
            shape = tuple(int(part) for part in item["shape"])
            yield Entry(str(name)[:300], str(item["dtype"])[:20], shape, data + start, data + end)


def _extent_problem(entries: tuple[Entry, ...], data: int, size: int) -> str:
    place = data
    for entry in sorted(entries, key=lambda item: (item.start, item.end)):
        bits = _TYPES[entry.dtype].itemsize * 8 if entry.dtype in _TYPES else _BITS.get(entry.dtype)
        if min(entry.shape, default=1) < 0 or entry.end < entry.start or entry.start != place:
            return f"has a gap or an overlap before tensor {entry.name}"
        if bits is not None and (math.prod(entry.shape) * bits + 7) // 8 != entry.end - entry.start:
            return f"gives tensor {entry.name} {entry.end - entry.start:,} bytes, which its shape and type do not need"
        place = entry.end
    if place > size:
        return f"is cut off: {size:,} bytes of {place:,}"
    return f"has {size - place:,} bytes behind its last tensor" if place < size else ""


@dataclass
class Values:
    """What the tensors of one file hold."""

    scanned: int = 0
    """Bytes."""
    whole: bool = True
    """Every tensor was scanned."""
    not_finite: list[tuple[str, int]] = field(default_factory=list)
    """Tensor and number of its elements that are NaN or infinite."""
    largest: float = 0.0
    largest_in: str = ""
    zero: list[str] = field(default_factory=list)
    """Matrices of zeros only, apart from those that are meant to be."""
    zero_tail: int = 0
    """Bytes at the end of the file that belong to tensors of zeros only, when a matrix is among them and what stands
    before is not zero: space that was reserved and never written."""


def scan(stream: BinaryIO, header: Header, size: int, budget: int) -> Values:
    """Read the tensors in the order of the file, at most `budget` bytes."""
    found = Values()
    zero: dict[str, bool] = {}
    entries = sorted(header.entries, key=lambda item: item.start)
    for entry in entries:
        length = entry.end - entry.start
        if entry.dtype not in _TYPES or entry.end > size or entry.start < 0 or found.scanned + length > budget:
            found.whole = False
            continue
        zero[entry.name] = _scan_one(stream, entry, found)
        found.scanned += length
    matrices = {
        entry.name
        for entry in entries
        if len(entry.shape) >= 2 and math.prod(entry.shape) >= _MATRIX and not _meant(entry.name)
    }
    found.zero = sorted(name for name in matrices if zero.get(name))
    tail = []
    for entry in reversed(entries):
        if not zero.get(entry.name, entry.end == entry.start):
            break
        tail.append(entry)
    if found.whole and tail and len(tail) < len(entries) and any(entry.name in matrices for entry in tail):
        found.zero_tail = tail[0].end - tail[-1].start
    return found


def _meant(name: str) -> bool:
    return any(part in name.lower() for part in _ZERO_ON_PURPOSE)


def _scan_one(stream: BinaryIO, entry: Entry, found: Values) -> bool:
    """Add one tensor; return whether it holds zeros only."""
    kind = _TYPES[entry.dtype]
    stream.seek(entry.start)
    left, bad, zero = entry.end - entry.start, 0, True
    while left > 0:
        data = bytearray(stream.read(min(PIECE, left)))
        usable = len(data) - len(data) % kind.itemsize
        if not usable:
            found.whole = False
            break
        left -= len(data)
        values = torch.frombuffer(data, dtype=kind, count=usable // kind.itemsize)
        if entry.dtype not in _FLOATS:
            zero = zero and not bool(values.any())
            continue
        values = values.float() if kind.itemsize == 1 else values
        low, high = (float(item) for item in torch.aminmax(values))
        if not (math.isfinite(low) and math.isfinite(high)):
            finite = torch.isfinite(values)
            bad += int((~finite).sum())
            kept = values[finite]
            low, high = (float(item) for item in torch.aminmax(kept)) if len(kept) else (0.0, 0.0)
            zero = False
        zero = zero and low == high == 0.0
        if max(-low, high) > found.largest:
            found.largest, found.largest_in = max(-low, high), entry.name
    if bad:
        found.not_finite.append((entry.name, bad))
    return zero and entry.end > entry.start

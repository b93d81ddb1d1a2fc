"""The fields of a protobuf message as they stand in its bytes, for messages whose layout is known but has no class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types (protobuf.dev/programming-guides/encoding)."""
_WIDTH = {FIXED64: 8, FIXED32: 4}
_LONGEST_VARINT = 10


class Field(NamedTuple):
    """One field: its number, its wire type, and where its contents stand."""

    number: int
    wire: int
    start: int
    end: int
    value: int = 0
    """The number of a varint, as unsigned 64 bits."""


def fields(data: bytes, start: int = 0, end: int | None = None) -> Iterator[Field]:
    """Walk over the fields of one message. Raises ValueError where the bytes are none."""
    end = len(data) if end is None else end
    while start < end:
        key, start = varint(data, start, end)
        number, wire = key >> 3, key & 7
        value = 0
        begin = start
        if wire == VARINT:
            value, start = varint(data, start, end)
        elif wire == BYTES:
            size, begin = varint(data, start, end)
            start = begin + size
        elif wire in _WIDTH:
            start += _WIDTH[wire]
        else:
            raise ValueError(f"wire type {wire} is not in use")
        if start > end or number == 0:
            raise ValueError("a field reaches beyond its message")
        yield Field(number, wire, begin, start, value)


def varint(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the number at `start` and where it ends. Raises ValueError where there is none."""
    value = shift = 0
    for place in range(start, min(end, start + _LONGEST_VARINT)):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, place + 1
        shift += 7
    raise ValueError("a number does not end")

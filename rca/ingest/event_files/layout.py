"""Where a scalar stands in the record that holds it: the same place in all records that are otherwise alike."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rca.ingest.event_files.settings import message_of
from rca.ingest.protobuf_wire import BYTES, FIXED32, FIXED64, VARINT, Field, fields

# Field numbers of tensorboard/compat/proto/{event,summary,tensor,tensor_shape}.proto.
_WALL_TIME, _STEP, _SUMMARY = 1, 2, 5
_VALUE = 1
_TAG, _SIMPLE_VALUE, _NODE_NAME, _TENSOR, _METADATA = 1, 2, 7, 8, 9
_DTYPE, _SHAPE, _CONTENT, _FLOATS, _DOUBLES = 1, 2, 4, 5, 6
_FLOAT, _DOUBLE, BFLOAT16 = 1, 2, 14
TENSOR_TYPES = {
    _FLOAT: "<f4",
    _DOUBLE: "<f8",
    3: "<i4",
    4: "u1",
    5: "<i2",
    6: "i1",
    9: "<i8",
    BFLOAT16: "<u2",
    17: "<u2",
    19: "<f2",
    22: "<u4",
    23: "<u8",
}
"""DataType (tensorboard/compat/proto/types.proto) -> numpy type of equal length; bfloat16 as its 16 bits."""
_HOLDERS = {
    (_CONTENT, BYTES): 0,
    (_FLOATS, BYTES): _FLOAT,
    (_FLOATS, FIXED32): _FLOAT,
    (_DOUBLES, BYTES): _DOUBLE,
    (_DOUBLES, FIXED64): _DOUBLE,
}
"""Fields of a tensor that can hold one number, and the type that it then has; 0 for any type."""


class Layout(NamedTuple):
    """One scalar record taken apart."""

    at: int
    """Where the summary begins: behind the wall time and the step."""
    value_at: int
    value_size: int
    dtype: int
    """DataType of the value."""
    tag: str
    plugin: str
    """Name of the plugin that the record states, mostly none but in the first record of a tag."""
    tensor: bool


def layout_of(record: bytes) -> Layout | None:
    """Take a record apart that holds a wall time, a step or none, and one scalar; None for every other record.

    What it says is left to the protobuf reader; only where it says it is found here.
    """
    from tensorboard.compat.proto.event_pb2 import Event

    try:
        where = _event(record)
    except ValueError:
        return None
    event = None if where is None else message_of(Event, record)
    if where is None or event is None:
        return None
    value = event.summary.value[0]
    kind = value.WhichOneof("value")
    return Layout(*where, value.tag, value.metadata.plugin_data.plugin_name, kind == "tensor")


def _event(record: bytes) -> tuple[int, int, int, int] | None:
    """Return where the summary begins, where the value stands, its bytes and its type."""
    parts = list(fields(record))
    if not parts or (parts[0].number, parts[0].wire) != (_WALL_TIME, FIXED64):
        return None
    if len(parts) == 3 and (parts[1].number, parts[1].wire) == (_STEP, VARINT):
        at = parts[1].end
    elif len(parts) == 2:
        at = parts[0].end
    else:
        return None
    value = _only(record, parts[-1], _SUMMARY)
    where = None if value is None else _value(record, value)
    return None if where is None else (at, *where)


def _only(record: bytes, summary: Field, number: int) -> Field | None:
    """Return the single value of a summary."""
    if (summary.number, summary.wire) != (number, BYTES):
        return None
    values = list(fields(record, summary.start, summary.end))
    return values[0] if len(values) == 1 and (values[0].number, values[0].wire) == (_VALUE, BYTES) else None


def _value(record: bytes, value: Field) -> tuple[int, int, int] | None:
    parts = list(fields(record, value.start, value.end))
    held = [part for part in parts if part.number not in {_TAG, _METADATA, _NODE_NAME}]
    if len(held) != 1 or len({part.number for part in parts}) != len(parts):
        return None
    if (held[0].number, held[0].wire) == (_SIMPLE_VALUE, FIXED32):
        return held[0].start, 4, _FLOAT
    return _tensor(record, held[0]) if (held[0].number, held[0].wire) == (_TENSOR, BYTES) else None


def _tensor(record: bytes, tensor: Field) -> tuple[int, int, int] | None:
    """Return where the only number of a tensor stands, its bytes and its type."""
    dtype, held = 0, None
    for part in fields(record, tensor.start, tensor.end):
        if (part.number, part.wire) == (_DTYPE, VARINT) and not dtype:
            dtype = part.value
        elif (part.number, part.wire) == (_SHAPE, BYTES) and part.start == part.end:
            continue
        elif (part.number, part.wire) in _HOLDERS and held is None:
            held = part
        else:
            return None
    if held is None or dtype not in TENSOR_TYPES or _HOLDERS[held.number, held.wire] not in {0, dtype}:
        return None
    size = np.dtype(TENSOR_TYPES[dtype]).itemsize
    return (held.start, size, dtype) if held.end - held.start == size else None

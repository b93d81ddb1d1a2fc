"""The ordinary scalar records of a TensorBoard event file, decoded in columns without one object a record.

`SummaryWriter.add_scalar` and most other writers leave one shape of record: wall time, step, and a summary with a
single tag and `simple_value`. All records of one length are looked at together; what is shaped differently (tensors,
texts, several values) is left to the protobuf reader. On a million scalars this is three times as fast as the
protobuf reader, which is why both exist; below a few hundred records it does not matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

MIN_GROUP = 64
"""Records of one length below which the protobuf reader is as fast."""
MAX_LENGTH = 250
"""Longer records hold a tag or metadata that this reader does not expect."""

_WALL_TIME, _STEP, _SUMMARY, _VALUE, _TAG, _SIMPLE_VALUE = 0x09, 0x10, 0x2A, 0x0A, 0x0A, 0x15
"""Field keys of Event and Summary.Value (tensorboard/compat/proto/{event,summary}.proto)."""


class Scalars(NamedTuple):
    """Scalars in columns."""

    record: npt.NDArray[np.int64]
    """Position of the record among those that were passed in."""
    wall_time: npt.NDArray[np.float64]
    step: npt.NDArray[np.int64]
    tag: pa.DictionaryArray
    value: npt.NDArray[np.float64]


def decode_scalars(
    data: bytes, start: npt.NDArray[np.int64], length: npt.NDArray[np.int64]
) -> tuple[list[Scalars], npt.NDArray[np.bool_]]:
    """Decode the records of the ordinary shape; return them and, for every record, whether it was decoded."""
    raw = np.frombuffer(data, np.uint8)
    done = np.zeros(len(start), dtype=bool)
    found: list[Scalars] = []
    sizes, counts = np.unique(length, return_counts=True)
    for size in sizes[(counts >= MIN_GROUP) & (sizes <= MAX_LENGTH)].tolist():
        index = np.flatnonzero(length == size)
        rows = raw[start[index][:, None] + np.arange(size)]
        for step_bytes in range(6):
            if not len(index):
                break
            taken = _fits(rows, size, step_bytes)
            if taken.any():
                found.append(_decode(rows[taken], index[taken], size, step_bytes))
                done[index[taken]] = True
                rows, index = rows[~taken], index[~taken]
    return found, done


def _summary_at(step_bytes: int) -> int:
    return 9 + (1 + step_bytes if step_bytes else 0)


def _fits(rows: npt.NDArray[np.uint8], size: int, step_bytes: int) -> npt.NDArray[np.bool_]:
    """Say which rows have the ordinary shape with a step of so many bytes (0: the field is absent, the step is 0)."""
    at = _summary_at(step_bytes)
    tag_length = size - at - 11
    if tag_length < 1 or size - at - 2 > 127:
        return np.zeros(len(rows), dtype=bool)
    fixed = {
        0: _WALL_TIME,
        at: _SUMMARY,
        at + 1: size - at - 2,
        at + 2: _VALUE,
        at + 3: size - at - 4,
        at + 4: _TAG,
        at + 5: tag_length,
        size - 5: _SIMPLE_VALUE,
    }
    fits = np.ones(len(rows), dtype=bool)
    for column, expected in fixed.items():
        fits &= rows[:, column] == expected
    if step_bytes:
        fits &= rows[:, 9] == _STEP
        fits &= (rows[:, 10 : 9 + step_bytes] > 127).all(axis=1)
        fits &= rows[:, 9 + step_bytes] < 128
    return fits


def _decode(rows: npt.NDArray[np.uint8], index: npt.NDArray[np.int64], size: int, step_bytes: int) -> Scalars:
    at = _summary_at(step_bytes)
    step = np.zeros(len(rows), dtype=np.int64)
    for byte in range(step_bytes):
        step |= (rows[:, 10 + byte].astype(np.int64) & 0x7F) << (7 * byte)
    tags = np.ascontiguousarray(rows[:, at + 6 : size - 5])
    packed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(tags.shape[1]), len(rows), [None, pa.py_buffer(tags)])
    encoded = packed.dictionary_encode()
    names = pa.array([tag.decode("utf-8", "replace") for tag in encoded.dictionary.to_pylist()], pa.string())
    return Scalars(
        index,
        np.ascontiguousarray(rows[:, 1:9]).view("<f8").ravel(),
        step,
        pa.DictionaryArray.from_arrays(encoded.indices, names),
        np.ascontiguousarray(rows[:, size - 4 :]).view("<f4").ravel().astype(np.float64),
    )

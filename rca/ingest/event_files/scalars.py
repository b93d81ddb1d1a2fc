"""The scalar records of a TensorBoard event file, decoded in columns without one object a record.

A writer leaves records that are alike but for wall time, step and value: `SummaryWriter.add_scalar` writes a
`simple_value`, `tf.summary.scalar` and Keras a tensor. All records of one length are looked at together: one of them
is taken apart to see where its value stands, and the bytes around the value say which records are like it. What is
shaped differently (texts, several values, rare types) is left to the protobuf reader. On a million scalars this is
several times as fast as the protobuf reader, which is why both exist; below a few hundred records it does not matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from rca.ingest.crc32c import masked, rows_at, start_state, state_of
from rca.ingest.event_files.layout import BFLOAT16, TENSOR_TYPES, Layout, layout_of

if TYPE_CHECKING:
    import numpy.typing as npt

    Rows = npt.NDArray[np.uint8]
    Index = npt.NDArray[np.int64]

MIN_GROUP = 64
"""Records of one length below which the protobuf reader is as fast."""
MAX_LENGTH = 500
"""Longer records hold a tag or metadata that this reader does not expect."""

_SHORTEST = 12
_FOOTER = 4
_WALL_TIME, _STEP = 0x09, 0x10
"""Field keys of Event (tensorboard/compat/proto/event.proto)."""
_BEHIND_TIME = 9
_STEP_BYTES = 5
"""A step of up to 35 bits; longer ones are left to the protobuf reader."""
_LAYOUTS = 4
_TRIES = 8
_MOST_KEYS = 4096


class Scalars(NamedTuple):
    """What was decoded of some records, one row a record."""

    code: npt.NDArray[np.int32]
    """Position of the tag in `ScalarDecoder.series`; -1 where the record was not decoded."""
    wall_time: npt.NDArray[np.float64]
    step: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    corrupt: npt.NDArray[np.bool_]
    """Records of the expected shape whose checksum does not fit."""


class ScalarDecoder:
    """Decodes the scalar records of one file, block by block."""

    def __init__(self, *, most_tags: int) -> None:
        self.series: list[str] = []
        """Tags, by their code."""
        self.tensors: set[int] = set()
        """Codes of tags whose values are tensors, so that their plugin says whether they are scalars."""
        self.plugins: dict[str, str] = {}
        """Plugins that records stated for their tag."""
        self._most_tags = most_tags
        self._codes: dict[str, int] = {}
        self._layouts: dict[tuple[int, int, bytes], Layout | None] = {}

    def code(self, tag: str) -> int:
        """Return the code of a tag, -1 where there are too many."""
        code = self._codes.get(tag, -1)
        if code < 0 and len(self.series) < self._most_tags:
            code = self._codes[tag] = len(self.series)
            self.series.append(tag)
        return code

    def decode(self, data: bytes, start: Index, length: Index) -> Scalars:
        """Decode the scalar records among these."""
        count = len(start)
        raw = np.frombuffer(data, np.uint8)
        out = Scalars(
            np.full(count, -1, np.int32),
            np.zeros(count),
            np.zeros(count, np.int64),
            np.zeros(count),
            np.zeros(count, bool),
        )
        short = length <= MAX_LENGTH
        counts = np.bincount(length[short], minlength=1)
        for size in np.flatnonzero(counts >= MIN_GROUP).tolist():
            if size >= _SHORTEST:
                index = np.flatnonzero(length == size)
                rows = rows_at(raw, start[index], size + _FOOTER)
                for step_bytes, picked in _step_sizes(rows):
                    self._alike(rows[picked], index[picked], step_bytes, out)
        return out

    def _alike(self, rows: Rows, index: Index, step_bytes: int, out: Scalars) -> None:
        """Decode rows of one length, whose summaries all begin at one place."""
        for _ in range(_LAYOUTS):
            layout = self._example(rows, step_bytes)
            if layout is None:
                return
            taken = self._take(rows, index, layout, out)
            if taken is None or taken.all():
                return
            rows, index = rows[~taken], index[~taken]

    def _example(self, rows: Rows, step_bytes: int) -> Layout | None:
        """Return the layout of the first row that has one, looking at a few rows only."""
        at = _BEHIND_TIME + (step_bytes + 1 if step_bytes else 0)
        for position in np.unique(np.linspace(0, len(rows) - 1, _TRIES, dtype=np.int64)).tolist():
            layout = layout_of(rows[position, :-_FOOTER].tobytes())
            if layout is not None and layout.at == at:
                return layout
        return None

    def _take(self, rows: Rows, index: Index, like: Layout, out: Scalars) -> npt.NDArray[np.bool_] | None:
        """Decode the rows whose value stands at one place; say which, None where the rows are too unlike."""
        size = rows.shape[1] - _FOOTER
        columns = np.arange(size)
        around = (columns >= like.at) & ((columns < like.value_at) | (columns >= like.value_at + like.value_size))
        keys = np.concatenate((rows[:, like.at : like.value_at], rows[:, like.value_at + like.value_size : size]), 1)
        packed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(keys.shape[1]), len(rows), [None, pa.py_buffer(keys)])
        encoded = packed.dictionary_encode()
        key = encoded.indices.to_numpy()
        distinct = len(encoded.dictionary)
        if distinct > max(_MOST_KEYS, len(rows) // 4):
            return None
        first = np.empty(distinct, np.int64)
        first[key[::-1]] = np.arange(len(rows))[::-1]
        layouts = [self._layout(rows[row, :size].tobytes(), like) for row in first.tolist()]
        taken: npt.NDArray[np.bool_] = np.array([layout is not None for layout in layouts])[key]
        alike = keys[first]
        state = state_of(alike, columns[around], size)[key] ^ start_state(size)
        state ^= state_of(rows[:, columns[~around]], columns[~around], size)
        stored = np.ascontiguousarray(rows[:, size:]).view("<u4").ravel()
        good = masked(state) == stored
        out.corrupt[index[taken & ~good]] = True
        for dtype in {layout.dtype for layout in layouts if layout is not None}:
            codes = [self._known(layout) if layout is not None and layout.dtype == dtype else -1 for layout in layouts]
            code = np.array(codes, np.int32)[key]
            picked = np.flatnonzero((code >= 0) & good)
            all_rows = len(picked) == len(rows)
            chosen, where = (rows, index) if all_rows else (rows[picked], index[picked])
            out.code[where] = code if all_rows else code[picked]
            out.wall_time[where] = np.ascontiguousarray(chosen[:, 1:_BEHIND_TIME]).view("<f8").ravel()
            out.step[where] = _steps(chosen, like.at)
            out.value[where] = _values(chosen[:, like.value_at : like.value_at + like.value_size], dtype)
        return taken

    def _layout(self, record: bytes, like: Layout) -> Layout | None:
        """Return the layout of a record if its value stands where that of another does."""
        around = record[like.at : like.value_at], record[like.value_at + like.value_size :]
        key = (like.value_at - like.at, len(around[1]), b"".join(around))
        if key not in self._layouts:
            if len(self._layouts) > 16 * _MOST_KEYS:
                self._layouts.clear()
            self._layouts[key] = layout_of(record)
        known = self._layouts[key]
        if known is None or known.value_size != like.value_size:
            return None
        return known if known.value_at - known.at == like.value_at - like.at else None

    def _known(self, layout: Layout) -> int:
        code = self.code(layout.tag)
        if layout.tensor:
            self.tensors.add(code)
        if layout.plugin:
            self.plugins.setdefault(layout.tag, layout.plugin)
        return code


def _step_sizes(rows: Rows) -> list[tuple[int, Index]]:
    """Return the rows by the bytes of their step; 0 where the field is absent and the step is 0."""
    begins = rows[:, 0] == _WALL_TIME
    stepped = begins & (rows[:, _BEHIND_TIME] == _STEP)
    found = [(0, np.flatnonzero(begins & ~stepped))]
    for count in range(1, _STEP_BYTES + 1):
        last = _BEHIND_TIME + count
        if last >= rows.shape[1] - _FOOTER:
            break
        ends = rows[:, last] < 128
        found.append((count, np.flatnonzero(stepped & ends)))
        stepped &= ~ends
    return [(count, index) for count, index in found if len(index)]


def _steps(rows: Rows, at: int) -> Index:
    step = np.zeros(len(rows), np.int64)
    for position, column in enumerate(range(_BEHIND_TIME + 1, at)):
        step |= (rows[:, column].astype(np.int64) & 0x7F) << (7 * position)
    return step


def _values(held: Rows, dtype: int) -> npt.NDArray[np.float64]:
    bits = np.ascontiguousarray(held).view(TENSOR_TYPES[dtype]).ravel()
    if dtype == BFLOAT16:
        bits = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return bits.astype(np.float64)

"""Files of one record a line, whatever their size: whole, or both ends and an even sample of what lies between."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rca.ingest.interface import IngestContext, Source
from rca.ingest.places.content import Buffer, give_back, open_content

MAX_SAMPLED = 12 * 1024**2
"""Bytes that are kept of one file: as Python values they take about twenty times as much."""
_END = MAX_SAMPLED // 4
"""Bytes at the beginning and at the end that are kept whole: how a run began and how it ended."""
_STEP = 4 * 1024**2


class Sampled(NamedTuple):
    """Whole lines of one file, decompressed, in their order."""

    data: bytes
    numbers: npt.NDArray[np.int64] | None
    """1-based number in the file of each line; None where all lines are there."""
    warnings: tuple[str, ...]

    def placed(self, events: pa.Table) -> pa.Table:
        """Return events whose lines are those of `data` with the lines of the file."""
        if self.numbers is None or not len(self.numbers):
            return events
        known = np.asarray(events["line"].is_valid())
        made = events["line"].fill_null(1).to_numpy()
        lines = self.numbers[np.clip(made, 1, len(self.numbers)) - 1]
        column = pa.array(lines, type=pa.int64(), mask=~known)
        return events.set_column(events.schema.get_field_index("line"), events.schema.field("line"), column)


def read_sampled(source: Source, context: IngestContext) -> Sampled:
    """Read the lines of a file. Raises UnreadableSource with the reason.

    A line that the limit on the size of a source cuts in two is left out, because half a number is a wrong one.
    """
    with open_content(source, context.limits) as content:
        data = content.data
        size = len(data)
        cut = size >= context.limits.source_bytes
        if size <= MAX_SAMPLED:
            whole = bytes(data)
            return Sampled(whole[: whole.rfind(b"\n") + 1] if cut else whole, None, content.warnings)
        kept, numbers, every = _sample(data, cut=cut)
        note = (
            f"The file holds {size:,} bytes: its first and last {_END:,} were read, and one in {every} of the lines "
            "in between."
        )
        return Sampled(kept, numbers, (*content.warnings, note))


def _sample(data: Buffer, *, cut: bool) -> tuple[bytes, npt.NDArray[np.int64], int]:
    size = len(data)
    begin = data.rfind(b"\n", 0, _END) + 1
    end = data.find(b"\n", size - _END) + 1 or size
    every = -(-max(end - begin, 0) // (MAX_SAMPLED - 2 * _END)) or 1
    pieces = [bytes(data[:begin])]
    first = pieces[0].count(b"\n")
    numbers = [np.arange(1, first + 1, dtype=np.int64)]
    place, passed = begin, 0
    while place < end:
        block = bytes(data[place : min(place + _STEP, end)])
        ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == 10) + 1
        if not len(ends):  # longer than any line that is read
            place = data.find(b"\n", place, end) + 1 or end
            passed += 1
            continue
        wanted = np.flatnonzero((passed + np.arange(len(ends))) % every == 0)
        starts = np.concatenate(([0], ends[:-1]))
        pieces += [block[start:stop] for start, stop in zip(starts[wanted], ends[wanted], strict=True)]
        numbers.append(first + passed + wanted + 1)
        passed += len(ends)
        place += int(ends[-1])
        give_back(data, place)
    last = bytes(data[end:])
    last = last[: last.rfind(b"\n") + 1] if cut else last
    pieces.append(last)
    count = last.count(b"\n") + (0 if last.endswith(b"\n") else 1)
    numbers.append(first + passed + np.arange(1, count + 1, dtype=np.int64))
    return b"".join(pieces), np.concatenate(numbers), every

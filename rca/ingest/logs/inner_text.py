"""Text inside of something else, read like a log of its own; lines and offsets stay those of the file."""

from __future__ import annotations

import io
import json
import stat
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rca.ingest.interface import IngestContext, Ingested, Ingestor, Place, Source

_IN_MEMORY = 1 << 20
"""Bytes of one text that are kept in memory; more goes to a temporary file, which the text reader can map."""
_FAR = 1 << 31

_Numbers = Callable[[], "np.ndarray[Any, Any]"]


@dataclass(frozen=True)
class _Size:
    st_size: int
    st_mode: int = stat.S_IFREG


class TextPlace:
    """A text in memory where a file is expected."""

    def __init__(self, name: str, data: bytes, parent: Place) -> None:
        self.name = name
        self.parent = parent
        self._data = data

    def __truediv__(self, name: str, /) -> Place:
        """Return what lies beside the file: a text has no folder of its own."""
        return self.parent / name

    def iterdir(self) -> Iterator[Place]:
        """Raise, as a file does."""
        raise NotADirectoryError(self.name)

    def lstat(self) -> _Size:
        """Describe the text."""
        return _Size(len(self._data))

    def open(self, _mode: Literal["rb"], /) -> IO[bytes]:
        """Open the text."""
        return io.BytesIO(self._data)


class _Places:
    """Whole numbers that mostly grow by little, in four bytes each."""

    def __init__(self) -> None:
        self._steps = array("i")
        self._last = 0
        self._leaps: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._steps)

    def append(self, value: int) -> None:
        """Add a number."""
        step = value - self._last
        self._last = value
        if not -_FAR < step < _FAR:
            self._leaps.append((len(self._steps), step))
            step = 0
        self._steps.append(step)

    def values(self) -> np.ndarray[Any, Any]:
        """Return all of them."""
        found = np.cumsum(np.frombuffer(self._steps, dtype=np.int32), dtype=np.int64)
        for index, step in self._leaps:
            found[index:] += step
        return found


class InnerText:
    """Collects the lines of a text with the place of each in the file that holds it."""

    def __init__(self) -> None:
        self._memory = io.BytesIO()
        self._file: IO[bytes] | None = None
        self._lines, self._offsets = _Places(), _Places()

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, text: str, line: int, offset: int) -> None:
        """Add one line, given without its newline."""
        self._memory.write(text.encode("utf-8", "replace") + b"\n")
        self._lines.append(line)
        self._offsets.append(offset)
        if self._memory.tell() >= _IN_MEMORY:
            self._flush()

    def _flush(self) -> None:
        if self._file is None:
            self._file = NamedTemporaryFile(prefix="rca-", suffix=".log")  # noqa: SIM115 - lives as long as the text
        self._file.write(self._memory.getbuffer())
        self._file.flush()
        self._memory = io.BytesIO()

    def read(self, reader: Ingestor, source: Source, context: IngestContext) -> Ingested:
        """Read the text as `source` would be read if it were nothing else; the text is given up with it."""
        if self._file is None:
            data = self._memory.getvalue()
            place: Place = TextPlace(source.file.name, data, source.file.parent)
            return self._placed(reader.read(replace(source, file=place, size=len(data)), context))
        self._flush()
        with self._file as file:
            return self._placed(reader.read(replace(source, file=Path(file.name), size=file.tell()), context))

    def _placed(self, read: Ingested) -> Ingested:
        return replace(read, events=placed(read.events, self._lines.values, self._offsets.values))


def placed(events: pa.Table, lines: _Numbers, offsets: _Numbers) -> pa.Table:
    """Return the events with line and offset of the outer file; the k-th of `lines` is where inner line k + 1 stands.

    They are asked for one after the other: of a log of gigabytes either takes a hundred megabytes.
    """
    inner = events["line"].combine_chunks().to_pandas().to_numpy(dtype=float, na_value=np.nan)
    table = events
    for name, numbers in (("offset", offsets), ("line", lines)):
        values = numbers()
        known = np.isfinite(inner) & (inner >= 1) & (inner <= len(values))
        index = np.where(known, np.nan_to_num(inner), 1).astype(np.int64) - 1
        column = pa.array(values[index] if len(values) else index, mask=~known)
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), column)
        if name == "line" and pc.any(pc.equal(table["kind"].cast(pa.string()), "exception")).as_py():
            attrs = pa.array([_chain_placed(item, values) for item in table["attrs"].to_pylist()], type=pa.string())
            table = table.set_column(table.schema.get_field_index("attrs"), table.schema.field("attrs"), attrs)
    return table


def _chain_placed(attrs: str | None, lines: np.ndarray[Any, Any]) -> str | None:
    """Place the earlier exceptions of a chain, which carry their own lines."""
    if attrs is None or '"chain": [{' not in attrs:
        return attrs
    found = json.loads(attrs)
    for item in found["chain"]:
        line = item.get("line") if isinstance(item, dict) else None
        if isinstance(line, int) and 1 <= line <= len(lines):
            item["line"] = int(lines[line - 1])
    return json.dumps(found, ensure_ascii=False, sort_keys=True)

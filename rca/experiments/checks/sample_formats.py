"""One reader for each format of samples: JSON lines, JSON, CSV, Parquet, npz and npy.

Nothing is unpickled; bytes, rows and the sizes that a header announces are bounded before anything is allocated.
"""

from __future__ import annotations

import io
import json
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from rca.experiments.checks.files import LeftFile, shown

MAX_BYTES = 256 * 2**20
"""Bytes of one file, packed and unpacked."""
MAX_ROWS = 200_000
MAX_LINE = 16 * 2**20
NAMED_ARRAYS = frozenset({"input_ids", "labels", "targets", "features", "images"})
"""Names under which a bare array counts as that column."""

BROKEN = (
    *(OSError, ValueError, KeyError, TypeError, EOFError, OverflowError, RecursionError, struct.error),
    *(zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, tokenize.TokenError),
)
"""What the readers of json, csv, zip, npy and Parquet raise for a file that is not what its name says."""


@dataclass(frozen=True)
class Samples:
    """The samples of one file."""

    file: str
    """Path relative to the folder that was searched."""
    columns: Mapping[str, Any]
    """Column -> numpy array (samples along the first axis) or list of Python values, all of length `rows`."""
    rows: int
    whole: bool = True
    """False when the file has more than was read."""
    broken: tuple[tuple[int, str], ...] = ()
    """Rows (from 0) that cannot be read, and why; they are not in the columns."""
    numbers: Sequence[int] | None = None
    """Row in the file of each kept row; None where they are the same."""

    def number(self, row: int) -> int:
        """Return the row in the file (from 0)."""
        return row if self.numbers is None else int(self.numbers[row])


class Unusable(ValueError):
    """The file holds no samples, or more than is read."""


def read_table(stream: BinaryIO, file: LeftFile) -> Samples:
    """Read one file. Raises Unusable where it holds no samples, and what `BROKEN` lists where it is damaged."""
    lower = file.path.lower()
    if lower.endswith((".jsonl", ".ndjson")):
        return _json_lines(stream, file)
    if lower.endswith(".json"):
        return _json(stream, file)
    if lower.endswith((".csv", ".tsv")):
        return _csv(stream, file)
    return _parquet(stream, file) if lower.endswith(".parquet") else _arrays(stream, file)


def _json_lines(stream: BinaryIO, file: LeftFile) -> Samples:
    records: list[dict[str, Any]] = []
    numbers: list[int] = []
    broken: list[tuple[int, str]] = []
    read = 0
    row, end, cut = -1, True, False
    while line := stream.readline(MAX_LINE):
        read += len(line)
        end = line.endswith(b"\n")
        if read > MAX_BYTES or len(records) >= MAX_ROWS:
            break
        if not line.strip():
            continue
        row += 1
        if len(line) >= MAX_LINE and not end:
            cut = True
            break
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            broken.append((row, "not UTF-8" if isinstance(error, UnicodeDecodeError) else "not JSON"))
            continue
        if isinstance(record, dict):
            records.append(record)
            numbers.append(row)
        else:
            broken.append((row, "no object"))
    whole = read >= file.size and not cut
    if broken and broken[-1][0] == row and not (whole and end):
        # The line at which reading, writing or copying stopped is no sample.
        broken.pop()
        whole = False
    return Samples(shown(file.path), _columns(records), len(records), whole, tuple(broken), numbers)


def _json(stream: BinaryIO, file: LeftFile) -> Samples:
    data = stream.read(MAX_BYTES)
    try:
        document = json.loads(data)
    except json.JSONDecodeError as error:
        if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string"):
            raise Unusable("it ends before its JSON does") from error
        stream.seek(0)
        lines = _json_lines(stream, file)
        if not lines.rows:
            raise
        return lines
    if isinstance(document, dict):
        lists = {key: item for key, item in document.items() if isinstance(item, list)}
        inner = next((item for key, item in lists.items() if key in {"data", "samples", "examples", "rows"}), None)
        if inner is not None:
            document = inner
        elif lists and len({len(item) for item in lists.values()}) == 1 and len(lists) == len(document):
            rows = len(next(iter(lists.values())))
            return Samples(shown(file.path), {str(key): item for key, item in lists.items()}, rows)
    if not isinstance(document, list) or not all(isinstance(item, dict) for item in document):
        raise Unusable("no list of records")
    return Samples(shown(file.path), _columns(document[:MAX_ROWS]), len(document[:MAX_ROWS]), len(document) <= MAX_ROWS)


def _columns(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = list(dict.fromkeys(str(name) for record in records for name in record))[:512]
    return {name: _packed([record.get(name) for record in records]) for name in names}


def _packed(values: list[Any]) -> Any:
    """Return an array where every value is a number, which is looked at much faster than a list."""
    if values and all(type(item) in {int, float} for item in values):
        try:
            return np.asarray(values, dtype=np.int64 if all(type(item) is int for item in values) else np.float64)
        except OverflowError:
            return values
    return values


def _csv(stream: BinaryIO, file: LeftFile) -> Samples:
    import pandas as pd

    data = stream.read(MAX_BYTES)
    if not data.strip():
        return Samples(shown(file.path), {}, 0)
    try:
        frame = pd.read_csv(
            io.BytesIO(data),
            sep="\t" if file.path.lower().endswith(".tsv") else ",",
            nrows=MAX_ROWS + 1,
            encoding_errors="replace",
            low_memory=False,
        )
    except pd.errors.ParserError as error:
        raise ValueError(str(error)) from error
    whole = len(frame) <= MAX_ROWS and file.size <= MAX_BYTES
    return _of_frame(frame.iloc[:MAX_ROWS], file, whole)


def _of_frame(frame: Any, file: LeftFile, whole: bool) -> Samples:
    columns: dict[str, Any] = {}
    for name in list(frame.columns)[:512]:
        column = frame[name]
        values = column.to_numpy() if column.dtype.kind in "fiub" else column.to_numpy(dtype=object)
        columns[str(name)] = values if values.dtype.kind in "fiub" else _plain(values)
    return Samples(shown(file.path), columns, len(frame), whole)


def _plain(values: Any) -> list[Any]:
    """Return Python values; what pandas marks as missing is None."""
    return [None if isinstance(item, float) and math.isnan(item) else item for item in values]


def _parquet(stream: BinaryIO, file: LeftFile) -> Samples:
    import pyarrow.parquet as pq
    from pyarrow.lib import ArrowException

    try:
        source = pq.ParquetFile(stream)
        sizes = [source.metadata.row_group(place).total_byte_size for place in range(source.metadata.num_row_groups)]
        if sum(sizes) > MAX_BYTES or source.metadata.num_rows > MAX_ROWS:
            raise Unusable(f"{source.metadata.num_rows:,} rows of {sum(sizes):,} bytes are more than is read")
        table = source.read(use_threads=False)
        columns = {name: _of_arrow(table.column(name)) for name in table.column_names[:512]}
    except ArrowException as error:
        raise ValueError(str(error)) from error
    return Samples(shown(file.path), columns, table.num_rows)


def _of_arrow(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return column.to_numpy()
    return column.to_pylist()


def _arrays(stream: BinaryIO, file: LeftFile) -> Samples:
    if file.path.lower().endswith(".npy"):
        name = file.path.rpartition("/")[2][: -len(".npy")]
        return _of_arrays({name if name in NAMED_ARRAYS else "data": _array(stream)}, file)
    with zipfile.ZipFile(stream) as archive:
        if sum(record.file_size for record in archive.infolist()) > MAX_BYTES:
            raise Unusable("unpacked it is larger than is read")
        arrays = {}
        for record in archive.infolist()[:512]:
            if record.filename.endswith(".npy"):
                arrays[record.filename[: -len(".npy")]] = _array(io.BytesIO(archive.read(record)))
    return _of_arrays(arrays, file)


def _array(stream: BinaryIO) -> Any:
    """Read one array. Raises Unusable for one of Python objects, which only a pickle can hold, or too large a one."""
    version = np.lib.format.read_magic(stream)
    reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _order, dtype = reader(stream)
    if dtype.hasobject:
        raise Unusable("it holds pickled Python objects, which are never loaded")
    if float(np.prod([float(size) for size in shape])) * dtype.itemsize > MAX_BYTES:
        raise Unusable(f"an array of shape {shape} is larger than is read")
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)


def _of_arrays(arrays: Mapping[str, Any], file: LeftFile) -> Samples:
    sizes = [len(array) for array in arrays.values() if array.ndim >= 1]
    if not sizes:
        raise Unusable("no array with samples along its first axis")
    rows = max(sizes, key=lambda size: (sizes.count(size), size))
    kept = {name: array[:MAX_ROWS] for name, array in arrays.items() if array.ndim >= 1 and len(array) == rows}
    return Samples(shown(file.path), kept, min(rows, MAX_ROWS), rows <= MAX_ROWS)

"""CSV and TSV files of metrics: trainer histories, Lightning's metrics.csv, per-rank timings."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.machine.prometheus_query import add_labelled_columns
from rca.ingest.settings.described import add_described
from rca.ingest.tables.cells import number
from rca.ingest.tables.metric_table import add_metrics
from rca.ingest.tables.sampled_lines import read_sampled
from rca.ingest.tables.structured import decode, plain_name
from rca.ingest.weights.generated_text import generation_columns
from rca.ingest.weights.sample_files import SAMPLE_COLUMNS, add_samples

MAX_ROWS = 1_000_000
_NSYS = re.compile(rb"(?m)^\"?Time ?\(%\)\"?,\"?Total Time ?\(ns\)\"?,")
DELIMITERS = (",", "\t", ";", "|")


class Table(dict[str, pa.ChunkedArray]):
    """Columns of texts by name, in the order of the file."""

    lines: np.ndarray
    """1-based line of each row; an estimate where quoted fields span lines."""
    warnings: list[str]


def read_table(data: bytes, *, path: str) -> Table:
    """Parse delimited text with a header into columns of texts. Raises UnreadableSource."""
    text = decode(data)
    head = text[:65536].splitlines()
    skip = next((index for index, line in enumerate(head) if line.strip() and not line.startswith("#")), None)
    if skip is None:
        raise UnreadableSource(f"{path} holds no table.")
    header = head[skip]
    delimiter = max(DELIMITERS, key=header.count)
    names = _unique(_cells(header, delimiter))
    if all(number(name) is not None for name in names if name):
        raise UnreadableSource(f"{path} has no header line, so its columns have no names; add one.")
    ragged = 0

    def count_ragged(_row: object) -> str:
        nonlocal ragged
        ragged += 1
        return "skip"

    try:
        table = arrow_csv.read_csv(
            io.BytesIO(text.encode()),
            read_options=arrow_csv.ReadOptions(column_names=names, skip_rows=skip + 1, use_threads=False),
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=count_ragged
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True
            ),
        )
    except pa.ArrowInvalid as error:
        raise UnreadableSource(f"{path} could not be read as a table ({str(error)[:120]}).") from error
    found = Table(zip(names, table.slice(0, MAX_ROWS).columns, strict=True))
    found.lines = np.arange(min(table.num_rows, MAX_ROWS), dtype=np.int64) + skip + 2
    found.warnings = [f"{path}: {ragged} rows of another length than the header were left out."] if ragged else []
    if table.num_rows > MAX_ROWS:
        found.warnings.append(f"{path}: only the first {MAX_ROWS:,} of {table.num_rows:,} rows were read.")
    return found


def _cells(header: str, delimiter: str) -> list[str]:
    """Return the names of the columns; names in quotes may hold delimiters and quotes (Grafana)."""
    cells = next(csv.reader([header], delimiter=delimiter), []) if '"' in header else header.split(delimiter)
    return [name.strip().strip('"') for name in cells]


def _unique(names: list[str]) -> list[str]:
    """Give empty and repeated column names a number."""
    seen: dict[str, int] = {}
    result = []
    for position, name in enumerate(names):
        plain = name or f"column_{position + 1}"
        seen[plain] = seen.get(plain, 0) + 1
        result.append(plain if seen[plain] == 1 else f"{plain}.{seen[plain]}")
    return result


class _Lists(Mapping[str, list[str | None]]):
    """The columns as lists; only those that are looked at are turned into one."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._read: dict[str, list[str | None]] = {}

    def __getitem__(self, name: str) -> list[str | None]:
        if name not in self._read:
            self._read[name] = self._table[name].to_pylist()
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


def _named(table: Table, path: str) -> dict[str, pa.ChunkedArray]:
    """Return the columns; the one value of a curve that TensorBoard exports is named after its file."""
    lower = {name.lower() for name in table}
    if lower != {"wall time", "step", "value"}:
        return dict(table)
    tag = re.split(r"tag[-_]", PurePosixPath(path).name.split(".csv")[0], maxsplit=1)[-1]
    return {tag if name.lower() == "value" else name: column for name, column in table.items()}


def _small(table: Table) -> dict[str, list[str | None]]:
    """Return the columns that can tell samples apart, as lists."""
    return {name: column.to_pylist() for name, column in table.items() if name.lower() in SAMPLE_COLUMNS}


class CsvIngestor:
    """Reads delimited text with a header line into metric events."""

    name = "metrics table"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take `*.csv` and `*.tsv`, except for the statistics of nsys, whose rows are names of kernels and calls."""
        if _NSYS.search(head[:2000]):
            return False
        return plain_name(source.path).endswith((".csv", ".tsv")) and bool(head.strip())

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read the columns; a row without a number adds nothing."""
        found = read_sampled(source, context)
        data, notes = found.data, found.warnings
        table = read_table(data, path=source.path)
        out = EventBuilder(source.path, rank=source.rank, host=source.host)
        described = add_described(out, _Lists(table), path=source.path)
        labelled = add_labelled_columns(out, table, table.lines)
        taken = {*described, *labelled}
        columns = {name: column for name, column in _named(table, source.path).items() if name not in taken}
        warnings = [
            *notes,
            *table.warnings,
            *add_metrics(out, {**columns, **generation_columns(table)}, lines=table.lines),
        ]
        add_samples(out, _small(table), path=source.path)
        return Ingested(
            found.placed(out.build()), lines=len(table.lines) + 1, bytes=len(data), warnings=tuple(warnings)
        )

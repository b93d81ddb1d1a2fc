"""Readings of devices as metric events: one row a reading, labelled with the device and the host it is of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rca.events import EventBuilder
from rca.ingest.machine.device_names import UNITS, reading
from rca.ingest.tables.cells import whole

Cells: TypeAlias = "Sequence[str | None] | pa.ChunkedArray"
Device: TypeAlias = "int | str"


class DeviceColumn(NamedTuple):
    """One quantity as the tool printed it, a cell a row."""

    name: str
    """Common name."""
    cells: Cells
    unit: str = ""
    """Unit that the head of the column states for cells without one."""
    factor: float = 1.0


class Rows(NamedTuple):
    """What the rows of a table of readings are about."""

    lines: npt.NDArray[np.int64]
    devices: Sequence[Device]
    times: pa.Array | None = None
    """Microseconds since the epoch."""
    hosts: Sequence[str | None] | None = None
    steps: pa.Array | None = None
    labels: Mapping[Device, Mapping[str, Any]] | None = None
    """What else is known of a device, e.g. its uuid."""


def device_of(text: str) -> Device:
    """Return the index of a device as a number, and its uuid or bus id as text."""
    index = whole(text)
    return text.strip() if index is None else index


def add_device_columns(out: EventBuilder, columns: Sequence[DeviceColumn], rows: Rows) -> None:
    """Add every cell that holds a reading as a metric; of two columns with one name the first is taken."""
    labels = rows.labels or {}
    notes = {item: json.dumps({"gpu": item, **labels.get(item, {})}, sort_keys=True) for item in set(rows.devices)}
    attrs = pa.array([notes[item] for item in rows.devices], type=pa.string())
    hosts = None if rows.hosts is None else pa.array(list(rows.hosts), type=pa.string())
    told: set[str] = set()
    for column in columns:
        if column.name in told:
            continue
        values, present = _read(column)
        where = np.flatnonzero(present)
        if not len(where):
            continue
        told.add(column.name)
        taken = pa.array(where)
        out.extend(
            len(where),
            kind="metric",
            name=column.name,
            line=rows.lines[where],
            time=None if rows.times is None else stamps(rows.times.take(taken)),
            step=None if rows.steps is None else rows.steps.take(taken),
            host=out.host if hosts is None else hosts.take(taken),
            value=values[where],
            unit=UNITS.get(column.name, ""),
            attrs=attrs.take(taken),
        )


def stamps(micros: pa.Array) -> pa.Array:
    """Return microseconds since the epoch as times."""
    return micros.cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC"))


def _read(column: DeviceColumn) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return the values of a column and where there is one; devices repeat themselves, so each text is read once."""
    cells = column.cells if isinstance(column.cells, pa.ChunkedArray) else pa.array(column.cells, type=pa.string())
    coded = pc.dictionary_encode(cells)
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    if isinstance(coded, pa.ChunkedArray):
        return np.zeros(0), np.zeros(0, dtype=bool)
    known = [reading(text, column.name, unit=column.unit) for text in coded.dictionary.to_pylist()]
    values = np.array([np.nan if value is None else value * column.factor for value in known] or [np.nan])
    good = np.array([value is not None for value in known] or [False])
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    present = (codes >= 0) & good[np.maximum(codes, 0)]
    return values[np.maximum(codes, 0)], present


def by_round(times: pa.Array | None, count: int) -> list[Device]:
    """Return the device of each row of a loop that does not name its devices: their order within a round.

    A round is what is read in one go: its rows are milliseconds apart, and rounds are further apart. All of them must
    have the same number of rows.
    """
    if times is None or count < 2 or times.null_count:
        return [0] * count
    micros = times.to_numpy(zero_copy_only=False).astype(np.int64)
    gaps = np.diff(micros)
    if (gaps < 0).any() or gaps.max() <= 0:
        return list(range(count)) if len(gaps) and gaps.max() <= 0 else [0] * count
    starts = np.flatnonzero(np.concatenate([[True], gaps > gaps.max() / 2]))
    sizes = np.diff(np.append(starts, count))
    if len(starts) < 2 or len(set(sizes[:-1].tolist())) > 1 or sizes[-1] > sizes[0]:
        return [0] * count
    return [int(place) for place in np.arange(count) % sizes[0]]

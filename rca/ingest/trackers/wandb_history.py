"""Rows of a W&B run file as metrics: what the program logged, and what W&B measured of the machine."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence, Set

import numpy as np
import pyarrow as pa

from rca.events import EventBuilder
from rca.ingest.machine.device_names import UNITS
from rca.ingest.machine.device_readings import DeviceColumn, Rows, add_device_columns, stamps
from rca.ingest.tables.metric_table import MAX_COLUMNS, add_metrics

Row = tuple[int, "int | None", dict[str, float]]
"""Record, time in microseconds, and the numbers of one row by key."""

_OWN = ("_wandb", "_runtime")
MAX_TABLE = 10_000_000
"""Cells, empty ones counted, of the table that the rows make."""
MEDIA = "._type"
"""Ending of the key that says what a nested value is (histogram, table, image): no number of the program's."""
_DEVICE = re.compile(r"gpu\.(?P<index>\d{1,3})\.(?P<reading>\w{1,40})")
_READINGS = {
    "gpu": ("gpu_utilization", 1.0),
    "memory": ("gpu_memory_utilization", 1.0),
    "temp": ("gpu_temperature", 1.0),
    "memoryTemp": ("gpu_memory_temperature", 1.0),
    "powerWatts": ("power", 1.0),
    "enforcedPowerLimitWatts": ("power_limit", 1.0),
    "smClock": ("sm_clock", 1.0),
    "memoryClock": ("memory_clock", 1.0),
    "memoryAllocatedBytes": ("gpu_memory_used", 1 / 1024**3),
    "memoryAllocated": ("gpu_memory_used_share", 1.0),
}
"""W&B's name of a reading -> common name and factor (docs.wandb.ai, system metrics)."""
_HOST = {
    "proc.memory.rssMB": ("host rss", 1 / 1024, "GiB"),
    "memory_percent": ("host memory percent", 1.0, "%"),
    "memory": ("host memory percent", 1.0, "%"),
    "cpu": ("host cpu percent", 1.0, "%"),
}
"""The few readings of the host that say something of a failure."""


def add_history(out: EventBuilder, rows: Sequence[Row], *, media: Set[str]) -> list[str]:
    """Add what the program logged, a row a call of `wandb.log`; return sentences on what was left out."""
    counts = Counter(key for _record, _time, row in rows for key in row)
    keys = [key for key in counts if not key.startswith(_OWN) and key not in media and not _within(key, media)]
    kept = keys[:MAX_COLUMNS]
    most = max(1, MAX_TABLE // max(1, len(kept)))
    step = -(-len(rows) // most)
    rows = rows[(len(rows) - 1) % step :: step] if rows else rows
    columns = {key: [row.get(key) for _record, _time, row in rows] for key in kept}
    lines = np.array([record for record, _time, _row in rows], np.int64)
    said = add_metrics(out, columns, lines=lines) if kept else []
    if step > 1:
        said.append(f"One row of the history in {step} is kept.")
    if len(keys) > len(kept):
        said.append(f"{len(keys) - len(kept):,} keys after the first {MAX_COLUMNS} were left out.")
    return said


def _within(key: str, media: Set[str]) -> bool:
    """Say whether a key is a part of a value that is no number: `weights.bins` of the histogram `weights`."""
    parts = key.split(".")
    return any(".".join(parts[:count]) in media for count in range(1, len(parts)))


def add_readings(out: EventBuilder, rows: Sequence[Row]) -> None:
    """Add what W&B measured: the readings of each GPU, and memory and load of the host."""
    of_gpu: dict[tuple[int, int], dict[str, float]] = defaultdict(dict)
    of_host: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for place, (_record, _time, row) in enumerate(rows):
        for key, value in row.items():
            if key in _HOST:
                of_host[key].append((place, value))
            elif (match := _DEVICE.fullmatch(key)) is not None and match["reading"] in _READINGS:
                of_gpu[place, int(match["index"])][match["reading"]] = value
    if not rows:
        return
    lines = np.array([record for record, _time, _row in rows], np.int64)
    times = pa.array([time for _record, time, _row in rows], pa.int64())
    for key, points in of_host.items():
        name, factor, unit = _HOST[key]
        places = np.array([place for place, _value in points])
        values = np.array([value for _place, value in points]) * factor
        when = stamps(times.take(pa.array(places)))
        out.extend(len(points), kind="metric", name=name, line=lines[places], time=when, value=values, unit=unit)
    if of_gpu:
        keys = list(of_gpu)
        places = np.array([place for place, _index in keys])
        about = Rows(lines[places], [index for _place, index in keys], times.take(pa.array(places)))
        cells = {
            raw: [None if (one := of_gpu[key].get(raw)) is None else repr(one * factor) for key in keys]
            for raw, (_name, factor) in _READINGS.items()
        }
        known = [
            DeviceColumn(_READINGS[raw][0], items, unit=UNITS.get(_READINGS[raw][0], ""))
            for raw, items in cells.items()
        ]
        add_device_columns(out, known, about)

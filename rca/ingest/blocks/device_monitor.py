"""Device readings that tools print line by line: `nvidia-smi dmon` and `pmon`, and query tables inside logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import re2

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.blocks.lines import add_system, claim, table_line, table_lines
from rca.ingest.logs.document import Document
from rca.ingest.logs.timestamps import Clock, Stamp, clock
from rca.ingest.machine.device_names import DMON
from rca.ingest.machine.device_readings import DeviceColumn, Rows, add_device_columns
from rca.ingest.machine.gpu_query import add_readings
from rca.ingest.tables.cells import number, whole
from rca.ingest.tables.csv_files import read_table

MAX_ROWS = 200_000
_DAY = re2.compile(r"((?:19|20)\d\d)(\d\d)(\d\d)")
_CLOCK = re2.compile(r"(\d\d):(\d\d):(\d\d)")
_MOST_PROCESSES = 64
"""Different processes of one table that are told; a loop names the same ones again and again."""


class _Printed(NamedTuple):
    """The rows below one head, cut into cells."""

    names: list[str]
    rows: list[list[str]]
    places: list[int]
    end: int


def _printed(document: Document, line: int) -> _Printed:
    """Read the rows below the head at `line`, repeated heads included; cells are parted by blanks or commas."""
    head = table_line(document, line)
    comma = "," in head
    names = _cells(head.lstrip("# "), comma=comma)
    names = [name.lower() for name in names]
    rows: list[list[str]] = []
    places: list[int] = []
    end = line + 1
    device = names.index("gpu") if "gpu" in names else 0
    for place, text in table_lines(document, line + 1, most=MAX_ROWS):
        cells = _cells(text, comma=comma)
        if text.lstrip().startswith("#"):
            again = [cell.lower() for cell in _cells(text.lstrip("# "), comma=comma)]
            if "gpu" in again and again != names:
                break
        elif len(cells) >= len(names) and whole(cells[device]) is not None:
            last = len(names) - 1
            rows.append([*cells[:last], " ".join(cells[last:])])
            places.append(place)
        elif cells:
            break
        end = place + 1
    return _Printed(names, rows, places, end)


def _cells(text: str, *, comma: bool) -> list[str]:
    return [cell.strip() for cell in text.split(",")] if comma and "," in text else text.split()


def _times(printed: _Printed) -> pa.Array | None:
    """Return the times that `-o DT` puts in front of the rows; a time of day without its date says nothing here."""
    if printed.names[:2] != ["date", "time"]:
        return None
    steady = Clock()
    found: list[int | None] = []
    for place, row in zip(printed.places, printed.rows, strict=True):
        day, time = _DAY.fullmatch(row[0]), _CLOCK.fullmatch(row[1])
        micros = None if time is None else clock(time[1], time[2], time[3])
        stamp = None if day is None or micros is None else Stamp(int(day[1]), int(day[2]), int(day[3]), micros)
        found.append(None if stamp is None else steady.resolve(stamp, place))
    return pa.array(found, type=pa.int64())


class DmonParser:
    """Adds the columns of `nvidia-smi dmon` as metrics labelled with the device."""

    name = "nvidia-smi dmon"
    triggers: tuple[str, ...] = (
        r"^#\s*(?:Date\s+)?(?:Time\s+)?gpu\s+\w+.*\b(?:sm|pwr|pclk|gtemp|temp|pviol|fb|rxpci|sbecc)\b",
        r"^#\s*(?:Date,\s*)?(?:Time,\s*)?gpu,\s*\w+.*\b(?:sm|pwr|pclk|gtemp|temp|pviol|fb|rxpci|sbecc)\b",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows below the header at `line`, repeated headers included."""
        printed = _printed(document, line)
        names = printed.names
        if not printed.rows or "gpu" not in names or "pid" in names:
            return line
        columns = [
            DeviceColumn(DMON[name], [row[at] for row in printed.rows]) for at, name in enumerate(names) if name in DMON
        ]
        devices = [whole(row[names.index("gpu")]) or 0 for row in printed.rows]
        times = _times(printed)
        rows = Rows(np.asarray(printed.places, dtype=np.int64), devices, times)
        add_device_columns(out, columns, rows)
        if "tviol" in names:
            _add_violations(out, document, printed, devices)
        return claim(document, line, printed.end)


def _add_violations(out: EventBuilder, document: Document, printed: _Printed, devices: Sequence[int]) -> None:
    """Add one throttle event a device whose clocks heat held down; the column is a flag."""
    at = printed.names.index("tviol")
    flags = [number(row[at]) for row in printed.rows]
    for device in dict.fromkeys(devices):
        own = [place for place, owner in enumerate(devices) if owner == device and flags[place] is not None]
        active = [place for place in own if flags[place]]
        if active:
            attrs = {"gpu": device, "reason": "hw_thermal_slowdown", "samples": len(own)}
            share = len(active) / len(own)
            add_system(out, document, printed.places[active[0]], name="system.throttle", value=share, attrs=attrs)


class PmonParser:
    """Adds one `system.gpu_process` for each process that `nvidia-smi pmon` shows on a device."""

    name = "nvidia-smi pmon"
    triggers: tuple[str, ...] = (r"^#\s*(?:Date\s+)?(?:Time\s+)?gpu\s+pid\s+type\b",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows below the header at `line`; each process is told once, with the most it held."""
        printed = _printed(document, line)
        if not printed.rows or not {"gpu", "pid", "type", "command"} <= set(printed.names):
            return line
        found: dict[tuple[str, str], tuple[int, dict[str, str]]] = {}
        for place, cells in zip(printed.places, printed.rows, strict=True):
            row = dict(zip(printed.names, cells, strict=True))
            key = (row["gpu"], row["pid"])
            if whole(row["pid"]) is None or (key not in found and len(found) >= _MOST_PROCESSES):
                continue
            before = found.get(key)
            if before is None or (number(row.get("fb", "")) or 0) > (number(before[1].get("fb", "")) or 0):
                found[key] = (place if before is None else before[0], row)
        for place, row in found.values():
            held = number(row.get("fb", ""))
            attrs = {
                "gpu": whole(row["gpu"]),
                "pid": whole(row["pid"]),
                "type": row["type"],
                "process": row["command"],
                "memory_bytes": None if held is None else int(held * 1024**2),
                "utilization": number(row.get("sm", "")),
            }
            add_system(out, document, place, name="system.gpu_process", text=row["command"], attrs=attrs)
        return claim(document, line, printed.end)


class GpuQueryParser:
    """Reads a `nvidia-smi --query-gpu --format=csv` table that stands inside a log."""

    name = "gpu readings"
    triggers: tuple[str, ...] = (
        r"^(?:timestamp|index|name|uuid|gpu_uuid|pstate|count|gpu_name|gpu_bus_id|pci\.bus_id|driver_version), "
        r".*(?:utilization\.gpu|temperature\.gpu|power\.draw|clocks|memory\.used|used_gpu_memory|ecc\.|pcie\.|remapped)",
        r"^(?:utilization\.(?:gpu|memory)|temperature\.gpu|power\.draw|memory\.(?:used|total|free)|fan\.speed)"
        r"(?: \[[^\]]{1,9}\])?, [a-z]",
        r"^pid, .*used_(?:gpu_)?memory",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows below the header at `line` that have as many cells as it has."""
        header = table_line(document, line)
        kept, places, end = [header], [], line + 1
        for place, text in table_lines(document, line + 1, most=MAX_ROWS):
            if text.count(",") != header.count(","):
                break
            kept.append(text)
            places.append(place)
            end = place + 1
        if not places:
            return line
        try:
            table = read_table("\n".join(kept).encode(), path=document.path)
        except UnreadableSource:
            return line
        table.lines = np.asarray(places, dtype=np.int64)[: len(table.lines)]
        add_readings(out, table)
        return claim(document, line, end)

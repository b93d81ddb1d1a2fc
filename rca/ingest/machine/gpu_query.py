"""Device readings over time as CSV: `nvidia-smi --query-gpu=... --format=csv` and its kin."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.machine.device_names import QUERY, card_name, column_name, plain, reading, unit_of
from rca.ingest.machine.device_readings import Device, DeviceColumn, Rows, add_device_columns, by_round, device_of
from rca.ingest.tables.cells import whole
from rca.ingest.tables.csv_files import Table, read_table
from rca.ingest.tables.metric_table import add_metrics, time_of
from rca.ingest.tables.sampled_lines import read_sampled
from rca.ingest.tables.structured import decode

_DEVICE_COLUMNS = ("index", "gpu", "gpu_id", "deviceid", "device", "gpu_uuid", "uuid", "gpu_bus_id", "pci.bus_id")
_HOST_COLUMNS = ("hostname", "host", "node", "nodename")
_LABELS = {"uuid": "uuid", "gpu_uuid": "uuid", "pci.bus_id": "bus_id", "gpu_bus_id": "bus_id"}
_ABOUT = frozenset({"name", "gpu_name", "driver_version", "pstate", "serial", "vbios_version", "count", "compute_cap"})
"""Columns that describe the device and are no readings."""
_UNNAMED = "unnamed_"
_STAMP = re.compile(r"(?:19|20)\d\d/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}")
_GPU_NAME = re.compile(r"(?:NVIDIA|Tesla|Quadro|GeForce) [\w .()/-]{2,60}")
_BY_UNIT = {
    "%": ("utilization.gpu", "utilization.memory"),
    "MiB": ("memory.used", "memory.total"),
    "W": ("power.draw", "power.limit"),
    "MHz": ("clocks.sm",),
}
"""What the first columns of a unit are in the orders that people ask for."""
_APPS = ("used_gpu_memory", "used_memory")
_REASON_COLUMNS = ("clocks_throttle_reasons.", "clocks_event_reasons.")
THROTTLE_BITS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
"""Bits of nvmlClocksEventReasons (NVML API reference, nvml.h)."""
_FILLED = frozenset({"active", "1"})
_MOST_PROCESSES = 10_000


class GpuQueryIngestor:
    """Reads device readings into metrics labelled with the device, and throttle reasons into system events."""

    name = "gpu readings"

    def accepts(self, source: Source, head: bytes) -> bool:  # noqa: ARG002 - the content decides, not the name
        """Take a comma table whose header names columns of a monitor, or rows of `nvidia-smi` without a header."""
        first = next((line for line in decode(head).splitlines() if line.strip() and not line.startswith("#")), "")
        return _queried(first) or bool(headless_names(first))

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read the readings of every device."""
        found = read_sampled(source, context)
        data, notes = found.data, found.warnings
        out = EventBuilder(source.path, rank=source.rank, host=source.host)
        names = headless_names(decode(data[:4096]).split("\n", maxsplit=1)[0])
        table = read_table(", ".join(names).encode() + b"\n" + data if names else data, path=source.path)
        if names:
            table.lines = table.lines - 1
        warnings = [*notes, *table.warnings, *add_readings(out, table)]
        return Ingested(
            found.placed(out.build()), lines=len(table.lines) + 1, bytes=len(data), warnings=tuple(warnings)
        )


def headless_names(row: str) -> list[str]:
    """Return the columns of a row of `--format=csv,noheader`, told by their units; empty for any other row.

    A bare number may be anything, so it has no name; nor has a second one of a unit that says nothing about its order.
    """
    cells = [cell.strip() for cell in row.split(",")]
    if len(cells) < 3 or not (_STAMP.fullmatch(cells[0]) or _GPU_NAME.fullmatch(cells[0]) or cells[0].isdigit()):
        return []
    left = {unit: list(names) for unit, names in _BY_UNIT.items()}
    found: list[str] = []
    for place, cell in enumerate(cells):
        unit = cell.rpartition(" ")[2] if cell[:1].isdigit() else ""
        if _STAMP.fullmatch(cell):
            found.append("timestamp")
        elif _GPU_NAME.fullmatch(cell):
            found.append("name")
        elif cell.startswith("GPU-"):
            found.append("uuid")
        elif left.get(unit):
            found.append(left[unit].pop(0))
        elif place <= 1 and cell.isdigit() and int(cell[:3]) < 64 and "index" not in found:
            found.append("index")
        else:
            found.append(f"{_UNNAMED}{place}")
    measured = [name for name in found if name in QUERY]
    return found if len(measured) >= 2 and len(set(found)) == len(found) else []


def _queried(header: str) -> bool:
    names = [plain(part) for part in header.split(",")]
    if len(names) < 2:
        return False
    known = [name for name in names if name in QUERY or name.startswith(_REASON_COLUMNS)]
    foreign = [name for name in names if column_name(name)] if _device_column(names) else []
    cards = [name for name in names if card_name(name)] if names[0] == "device" else []
    return bool(known or len(foreign) > 1 or cards) or _apps(names)


def _device_column(names: Collection[str]) -> str | None:
    return next((name for name in _DEVICE_COLUMNS if name in names), None)


def _apps(names: Sequence[str]) -> bool:
    """Say whether these are the columns of `nvidia-smi --query-compute-apps`."""
    return "pid" in names and any(name in names for name in _APPS)


def add_readings(out: EventBuilder, table: Table) -> list[str]:
    """Add device readings: metrics, throttle reasons, and one system event a device."""
    table = _without_heads(table)
    by_name = {plain(name): name for name in reversed(list(table))}
    count = len(table.lines)
    if not count:
        return []
    if _apps(list(by_name)):
        _add_processes(out, table, by_name)
        return []
    times = time_of(table[by_name["timestamp"]]) if "timestamp" in by_name else None
    device_name = _device_column(by_name)
    device_column = None if device_name is None else by_name[device_name]
    named = card_name if device_name == "device" else column_name
    devices = (
        [device_of((item or "0").strip().removeprefix("card")) for item in table[device_column].to_pylist()]
        if device_column
        else by_round(times, count)
    )
    host_column = next((by_name[name] for name in _HOST_COLUMNS if name in by_name), None)
    rows = Rows(
        table.lines,
        devices,
        times,
        hosts=table[host_column].to_pylist() if host_column else None,
        steps=_steps(table[by_name["step"]]) if "step" in by_name else None,
        labels=_labels(table, by_name, devices),
    )
    # The names of nvidia-smi are listed best first, where two columns mean the same.
    ordered = [name for name in QUERY if name in by_name] + [name for name in by_name if name not in QUERY]
    common = {name: found for name in ordered if (found := named(name) or column_name(name)) is not None}
    known = [DeviceColumn(found, table[by_name[name]], unit_of(by_name[name])) for name, found in common.items()]
    add_device_columns(out, known, rows)
    reasons = {raw: table[raw] for name, raw in by_name.items() if name.startswith(_REASON_COLUMNS)}
    active = _active_reasons(out, reasons, rows)
    used = {by_name[name] for name in by_name if name in {*common, *_ABOUT, *_LABELS, *_HOST_COLUMNS}}
    rest: dict[str, Any] = {
        raw: items
        for raw, items in table.items()
        if raw not in {*used, *reasons, device_column} and not raw.startswith(_UNNAMED)
    }
    _add_devices(out, table, by_name, rows)
    return add_metrics(
        out,
        rest | active,
        lines=table.lines,
        names={name: name for name in active},
        attrs=[{"gpu": device} for device in devices],
    )


def _without_heads(table: Table) -> Table:
    """Leave out the rows that repeat the head, as `nvidia-smi -l` prints it when it starts again."""
    first = next(iter(table), None)
    if first is None:
        return table
    keep = [item is None or item.strip() != first for item in table[first].to_pylist()]
    if all(keep):
        return table
    where = np.flatnonzero(keep)
    kept = Table({name: items.take(pa.array(where)) for name, items in table.items()})
    kept.lines, kept.warnings = table.lines[where], table.warnings
    return kept


def _steps(items: pa.ChunkedArray) -> pa.Array:
    return pa.array([whole(item or "") for item in items.to_pylist()], type=pa.int64())


def _labels(table: Table, by_name: Mapping[str, str], devices: Sequence[Device]) -> dict[Device, dict[str, Any]]:
    """Return the uuid and the bus id of each device where the table has them beside its index."""
    found: dict[Device, dict[str, Any]] = {device: {} for device in devices}
    first = {device: devices.index(device) for device in found}
    for name, label in _LABELS.items():
        if name in by_name:
            for device, place in first.items():
                text = (table[by_name[name]][place].as_py() or "").strip()
                if text and text != device:
                    found[device].setdefault(label, text)
    return found


def _add_processes(out: EventBuilder, table: Table, by_name: Mapping[str, str]) -> None:
    """Add the processes of `nvidia-smi --query-compute-apps`."""
    size_name = next(name for name in _APPS if name in by_name)
    columns = {name: table[raw].to_pylist() for name, raw in by_name.items()}
    unit = unit_of(by_name[size_name])
    for place, line in enumerate(table.lines[:_MOST_PROCESSES].tolist()):
        row = {name: (items[place] or "").strip() for name, items in columns.items()}
        size = reading(row[size_name], "gpu_memory_used", unit=unit)
        device = next((row[name] for name in _DEVICE_COLUMNS if row.get(name)), None)
        attrs = {
            "gpu": None if device is None else device_of(device),
            "pid": whole(row["pid"]),
            "process": row.get("process_name") or row.get("name"),
            "memory_bytes": None if size is None else int(size * 1024**3),
        }
        known = {key: item for key, item in attrs.items() if item is not None}
        out.add(
            kind="system",
            name="system.gpu_process",
            line=line,
            text=row.get("process_name") or row.get("name"),
            attrs=known,
        )


def _active_reasons(
    out: EventBuilder, reasons: dict[str, pa.ChunkedArray], rows: Rows
) -> dict[str, list[float | None]]:
    """Turn throttle columns (a bit mask, or `Active`) into 0/1 series and one system event a device and reason."""
    series: dict[str, list[float | None]] = {}
    devices, lines = rows.devices, rows.lines
    for raw, items in reasons.items():
        texts = [(item or "").strip().lower() for item in items.to_pylist()]
        reason = plain(raw).split(".", 1)[1]
        if reason in {"active", "supported"}:
            masks = [_mask(text) for text in texts] if reason == "active" else []
            for bit, named in THROTTLE_BITS.items():
                if any((mask or 0) & bit for mask in masks):
                    series[f"throttle_{named}"] = [None if mask is None else float(bool(mask & bit)) for mask in masks]
        elif any(text in {"active", "not active", "1", "0"} for text in texts):
            known = [text in {"active", "not active", "1", "0"} for text in texts]
            series[f"throttle_{reason}"] = [
                float(text in _FILLED) if good else None for text, good in zip(texts, known, strict=True)
            ]
    for name, values in series.items():
        for device in dict.fromkeys(devices):
            places = [place for place, owner in enumerate(devices) if owner == device and values[place] is not None]
            active = [place for place in places if values[place]]
            if active:
                out.add(
                    kind="system",
                    name="system.throttle",
                    line=int(lines[active[0]]),
                    value=len(active) / len(places),
                    host=None if rows.hosts is None else rows.hosts[active[0]],
                    attrs={"gpu": device, "reason": name.removeprefix("throttle_"), "samples": len(places)},
                )
    return series


def _mask(text: str) -> int | None:
    try:
        return int(text, 16) if text.startswith("0x") and len(text) < 20 else None
    except ValueError:
        return None


def _add_devices(out: EventBuilder, table: Table, by_name: Mapping[str, str], rows: Rows) -> None:
    """Add one system event for every device that the table names."""
    if not {"name", "gpu_name", "memory.total"} & by_name.keys():
        return
    for device in dict.fromkeys(rows.devices):
        place = rows.devices.index(device)
        row = {name: (table[raw][place].as_py() or "").strip() for name, raw in by_name.items()}
        sizes = {}
        for name in ("memory.total", "memory.used"):
            size = reading(row.get(name), "gpu_memory_used", unit=unit_of(by_name.get(name, "")))
            sizes[f"{name.replace('.', '_')}_bytes"] = None if size is None else int(size * 1024**3)
        found = {
            "index": device,
            "name": row.get("name") or row.get("gpu_name"),
            "driver": row.get("driver_version"),
            "compute_capability": row.get("compute_cap"),
            **sizes,
            **(rows.labels or {}).get(device, {}),
        }
        out.add(
            kind="system",
            name="system.gpu",
            line=int(rows.lines[place]),
            time=None if rows.times is None else rows.times[place].as_py(),
            host=None if rows.hosts is None else rows.hosts[place],
            text=found["name"] or None,
            attrs={key: item for key, item in found.items() if item not in {None, ""}},
        )

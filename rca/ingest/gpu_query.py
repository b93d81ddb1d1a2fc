"""Device readings over time as CSV: `nvidia-smi --query-gpu=... --format=csv` and its kin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rca.events import EventBuilder
from rca.ingest.cells import number_with_unit, size_in_bytes, whole
from rca.ingest.csv_files import Table, read_table
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.metric_table import add_metrics, time_of
from rca.ingest.structured import decode, read_lines

_DEVICE_COLUMNS = ("index", "gpu", "gpu_id", "pci.bus_id", "uuid")
_NAMES = {
    "utilization.gpu": "gpu_utilization",
    "utilization.memory": "gpu_memory_utilization",
    "temperature.gpu": "gpu_temperature",
    "temperature.memory": "gpu_memory_temperature",
    "power.draw": "power",
    "power.draw.average": "power",
    "power.draw.instant": "power",
    "power.limit": "power_limit",
    "clocks.sm": "sm_clock",
    "clocks.current.sm": "sm_clock",
    "clocks.gr": "sm_clock",
    "clocks.current.graphics": "sm_clock",
    "clocks.max.sm": "sm_clock_max",
    "memory.used": "gpu_memory_used",
    "memory.total": "gpu_memory_total",
    "memory.free": "gpu_memory_free",
}
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


class GpuQueryIngestor:
    """Reads device readings into metrics labelled with the device, and throttle reasons into system events."""

    name = "gpu readings"

    def accepts(self, source: Source, head: bytes) -> bool:  # noqa: ARG002 - the content decides, not the name
        """Take a comma table whose header names columns of `nvidia-smi --query-gpu`."""
        first = next((line for line in decode(head).splitlines() if line.strip() and not line.startswith("#")), "")
        return _queried(first)

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read the readings of every device."""
        data, _cut, notes = read_lines(source, context)
        out = EventBuilder(source.path, rank=source.rank, host=source.host)
        table = read_table(data, path=source.path)
        warnings = [*notes, *table.warnings, *add_readings(out, table)]
        return Ingested(out.build(), lines=len(table.lines) + 1, bytes=len(data), warnings=tuple(warnings))


def _queried(header: str) -> bool:
    names = [_plain(part) for part in header.split(",")]
    return len(names) > 1 and sum(name in _NAMES or name.startswith(_REASON_COLUMNS) for name in names) >= 1


def _plain(column: str) -> str:
    """Return a column name without its unit: `power.draw [W]` -> `power.draw`."""
    return column.split("[", maxsplit=1)[0].strip().lower()


def add_readings(out: EventBuilder, table: Table) -> list[str]:
    """Add device readings: metrics, throttle reasons, and one system event a device."""
    by_name = {_plain(name): name for name in table}
    device_column = next((by_name[name] for name in _DEVICE_COLUMNS if name in by_name), None)
    count = len(table.lines)
    devices = (
        [str(item or "0").strip() for item in table[device_column].to_pylist()] if device_column else ["0"] * count
    )
    columns: dict[str, Any] = {name: items for name, items in table.items() if name != device_column}
    names = {raw: _NAMES[plain] for plain, raw in by_name.items() if plain in _NAMES}
    for plain, raw in by_name.items():
        if plain.startswith("memory.") and plain in _NAMES and columns.pop(raw, None) is not None:
            columns[f"{plain} [GiB]"] = [_gib(item, raw) for item in table[raw].to_pylist()]
            names[f"{plain} [GiB]"] = _NAMES[plain]
    reasons = {raw: columns.pop(raw) for plain, raw in by_name.items() if plain.startswith(_REASON_COLUMNS)}
    columns |= _active_reasons(out, reasons, devices, table.lines)
    names |= {name: name for name in columns if name.startswith("throttle_")}
    _add_devices(out, table, by_name, devices)
    return add_metrics(
        out, columns, lines=table.lines, names=names, attrs=[{"gpu": _number(device)} for device in devices]
    )


def _number(device: str) -> int | str:
    index = whole(device)
    return device if index is None else index


def _gib(item: str | None, column: str) -> float | None:
    """Read `74210 MiB`, or a bare number in the unit of its column, as GiB."""
    found = number_with_unit(item or "")
    if found is None:
        return None
    bare = size_in_bytes(f"{found[0]}{found[1] or ('MiB' if 'mib' in column.lower() or '[' not in column else '')}")
    return None if bare is None else bare / 1024**3


def _active_reasons(
    out: EventBuilder, reasons: dict[str, pa.ChunkedArray], devices: Sequence[str], lines: np.ndarray
) -> dict[str, list[float | None]]:
    """Turn throttle columns (a bit mask, or `Active`) into 0/1 series and one system event a device and reason."""
    series: dict[str, list[float | None]] = {}
    for raw, items in reasons.items():
        texts = [(item or "").strip().lower() for item in items.to_pylist()]
        reason = _plain(raw).split(".", 1)[1]
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
                    attrs={"gpu": _number(device), "reason": name.removeprefix("throttle_"), "samples": len(places)},
                )
    return series


def _mask(text: str) -> int | None:
    try:
        return int(text, 16) if text.startswith("0x") and len(text) < 20 else None
    except ValueError:
        return None


def _add_devices(out: EventBuilder, table: Table, by_name: dict[str, str], devices: Sequence[str]) -> None:
    """Add one system event for every device that the table names."""
    if "name" not in by_name and "memory.total" not in by_name:
        return
    times = time_of(table[by_name["timestamp"]]) if "timestamp" in by_name else None
    for device in dict.fromkeys(devices):
        place = devices.index(device)
        row = {plain: (table[raw][place].as_py() or "").strip() for plain, raw in by_name.items()}
        total, used = _gib(row.get("memory.total"), by_name.get("memory.total", "")), None
        if "memory.used" in by_name:
            used = _gib(row["memory.used"], by_name["memory.used"])
        found = {
            "index": _number(device),
            "name": row.get("name"),
            "driver": row.get("driver_version"),
            "memory_total_bytes": None if total is None else int(total * 1024**3),
            "memory_used_bytes": None if used is None else int(used * 1024**3),
            "compute_capability": row.get("compute_cap"),
        }
        out.add(
            kind="system",
            name="system.gpu",
            line=int(table.lines[place]),
            time=None if times is None else times[place].as_py(),
            text=row.get("name") or None,
            attrs={key: item for key, item in found.items() if item not in {None, ""}},
        )

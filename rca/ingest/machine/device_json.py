"""Snapshots of devices as JSON: `gpustat --json`, `rocm-smi --json`, `amd-smi`-like cards."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rca.events import EventBuilder
from rca.ingest.logs.timestamps import first_full_date
from rca.ingest.machine.device_names import QUERY, ROCM, plain, reading
from rca.ingest.tables.cells import number, size_in_bytes

MAX_DEVICES = 512
_CARD = re.compile(r"card[0-9]{1,3}")
SNAPSHOT = {
    "gpu_utilization": "utilization",
    "gpu_temperature": "temperature",
    "power": "power_w",
    "power_limit": "power_limit_w",
    "sm_clock": "sm_clock_mhz",
    "sm_clock_max": "sm_clock_max_mhz",
}
"""How a snapshot of a device calls what a series of readings calls otherwise."""


def is_device_snapshot(document: Any) -> bool:
    """Say whether a document is what gpustat or rocm-smi print."""
    if not isinstance(document, dict):
        return False
    devices = document.get("gpus")
    if isinstance(devices, list) and devices:
        return all(isinstance(item, dict) and "index" in item and "memory.total" in item for item in devices)
    cards = [item for name, item in document.items() if _CARD.fullmatch(str(name))]
    return bool(cards) and all(isinstance(item, dict) for item in cards)


def add_device_snapshot(out: EventBuilder, document: dict[str, Any]) -> None:
    """Add one `system.gpu` a device, and its processes."""
    if isinstance(document.get("gpus"), list):
        _add_gpustat(out, document)
        return
    driver = document.get("system")
    version = driver.get("Driver version") if isinstance(driver, dict) else None
    for name, card in list(document.items())[:MAX_DEVICES]:
        if not _CARD.fullmatch(str(name)) or not isinstance(card, dict):
            continue
        found = dict(_readings((plain(str(key)), key, value) for key, value in card.items()))
        label = card.get("Card series") or card.get("Device Name") or card.get("Card Series")
        attrs = {"index": int(str(name).removeprefix("card")), "name": label, "driver": version, **found}
        _add(out, attrs)


def _readings(cells: Iterator[tuple[str, Any, Any]]) -> Iterator[tuple[str, float | int]]:
    told: set[str] = set()
    for key, _raw, value in cells:
        name = ROCM.get(key)
        if name is None or name in told:
            continue
        if name in {"gpu_memory_total", "gpu_memory_used"}:
            size = size_in_bytes(str(value))
            if size is not None:
                told.add(name)
                yield f"{name.removeprefix('gpu_')}_bytes", size
        elif (known := reading(value, name)) is not None:
            told.add(name)
            yield SNAPSHOT.get(name, name), known


def _add_gpustat(out: EventBuilder, document: dict[str, Any]) -> None:
    host = document.get("hostname")
    time = first_full_date(str(document.get("query_time", ""))[:40].encode())
    for device in document["gpus"][:MAX_DEVICES]:
        if not isinstance(device, dict):
            continue
        found: dict[str, Any] = {}
        for key, name in QUERY.items():
            value = number(device.get(key))
            if value is not None and name.startswith("gpu_memory_") and key.startswith("memory."):
                found[f"{key.replace('.', '_')}_bytes"] = int(value * 1024**2)
            elif value is not None:
                found[SNAPSHOT.get(name, name)] = value
        processes = [item for item in device.get("processes") or [] if isinstance(item, dict)]
        attrs = {
            "index": device.get("index"),
            "name": device.get("name"),
            "uuid": device.get("uuid"),
            "driver": document.get("driver_version"),
            "processes": len(processes),
            **found,
        }
        _add(out, attrs, host=host if isinstance(host, str) else None, time=time)
        for process in processes[:64]:
            size = number(process.get("gpu_memory_usage"))
            told = {
                "gpu": device.get("index"),
                "pid": process.get("pid"),
                "process": process.get("command"),
                "user": process.get("username"),
                "memory_bytes": None if size is None else int(size * 1024**2),
            }
            out.add(
                kind="system",
                name="system.gpu_process",
                time=time,
                host=host if isinstance(host, str) else None,
                text=str(process.get("command") or "")[:200] or None,
                attrs={key: item for key, item in told.items() if item is not None},
            )


def _add(out: EventBuilder, attrs: dict[str, Any], *, host: str | None = None, time: int | None = None) -> None:
    known = {key: item for key, item in attrs.items() if item is not None}
    name = known.get("name")
    text = name if isinstance(name, str) else None
    out.add(kind="system", name="system.gpu", text=text, host=host, time=time, attrs=known)

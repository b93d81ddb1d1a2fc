"""The long report of `nvidia-smi -q`: one block of indented `Key : Value` lines a device."""

from __future__ import annotations

from typing import Any

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import add_system, claim, table_lines
from rca.ingest.logs.document import Document
from rca.ingest.logs.timestamps import first_full_date
from rca.ingest.machine.device_names import reading
from rca.ingest.tables.cells import number_with_unit, size_in_bytes, whole

_DEVICE = re2.compile(r"GPU ([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])")
_LINE = re2.compile(r"(\s*)(\S[^:]*?)\s*(?::\s*(.*))?")
_MAX_LINES = 50_000
_NUMBERS = {
    "utilization/gpu": "utilization",
    "temperature/gpu current temp": "temperature",
    "temperature/memory current temp": "gpu_memory_temperature",
    "gpu power readings/average power draw": "power_w",
    "gpu power readings/instantaneous power draw": "power_w",
    "gpu power readings/power draw": "power_w",
    "power readings/power draw": "power_w",
    "power readings/power limit": "power_limit_w",
    "gpu power readings/current power limit": "power_limit_w",
    "clocks/sm": "sm_clock_mhz",
    "max clocks/sm": "sm_clock_max_mhz",
    "remapped rows/uncorrectable error": "remapped_rows",
    "retired pages/double bit ecc": "retired_pages",
    "pci/gpu link info/pcie generation/current": "pcie_generation",
    "pci/gpu link info/pcie generation/max": "pcie_generation_max",
    "pci/gpu link info/pcie generation/device max": "pcie_generation_device_max",
    "pci/gpu link info/link width/current": "pcie_width",
    "pci/gpu link info/link width/max": "pcie_width_max",
    "pci/replays since reset": "pcie_replays",
    "remapped rows/pending": "remap_pending",
    "remapped rows/remapping failure occurred": "remap_failed",
    "retired pages/pending page blacklist": "retired_pages_pending",
    "gpu reset status/reset required": "reset_required",
}
_SIZES = {"fb memory usage/total": "memory_total_bytes", "fb memory usage/used": "memory_used_bytes"}
_TEXTS = {
    "product name": "name",
    "pci/bus id": "bus_id",
    "gpu uuid": "uuid",
    "persistence mode": "persistence",
    "mig mode/current": "mig",
    "performance state": "performance_state",
    "compute mode": "compute_mode",
    "fabric/state": "fabric_state",
    "fabric/status": "fabric_status",
    "gpu recovery action": "recovery_action",
}
_REASONS = ("clocks throttle reasons/", "clocks event reasons/")
_ECC = {
    ("volatile", "uncorrected"): "ecc_uncorrected",
    ("volatile", "corrected"): "ecc_corrected",
    ("aggregate", "uncorrected"): "ecc_uncorrected_total",
    ("aggregate", "corrected"): "ecc_corrected_total",
}


class NvidiaSmiQueryParser:
    """Adds `system.driver`, a `system.gpu` a device, `system.throttle` for active reasons, `system.gpu_process`."""

    name = "nvidia-smi -q"
    triggers: tuple[str, ...] = (r"^=+NVSMI LOG=+",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the report whose title stands at `line`."""
        driver: dict[str, Any] = {}
        devices: list[dict[str, Any]] = []
        path: list[tuple[int, str]] = []
        end = line + 1
        for place, text in table_lines(document, line + 1, most=_MAX_LINES):
            if not text.strip():
                continue
            match = _LINE.fullmatch(text.rstrip())
            indent = 0 if match is None else len(match[1])
            if (device := _DEVICE.match(text)) is not None:
                devices.append(
                    {"index": len(devices), "bus_id": device[1], "line": place, "reasons": [], "processes": []}
                )
                path = []
            elif match is None or (indent == 0 and match[3] is None):
                break
            else:
                path = [*(part for part in path if part[0] < indent), (indent, match[2].lower())]
                key = "/".join(part for _indent, part in path)
                _take(key, (match[3] or "").strip(), driver, devices, line=place)
            end = place + 1
        if not devices and not driver:
            return line
        _add(out, document, line, driver, devices)
        return claim(document, line, end)


def _add(
    out: EventBuilder, document: Document, line: int, driver: dict[str, Any], devices: list[dict[str, Any]]
) -> None:
    """Add what a report says of the driver and of every device."""
    time = driver.pop("time", None)
    if driver:
        add_system(out, document, line, name="system.driver", text=driver.get("driver"), attrs=driver)
    for device in devices:
        place, reasons, processes = device.pop("line"), device.pop("reasons"), device.pop("processes")
        attrs = {**device, **driver}
        if processes:
            attrs["processes"] = len(processes)
        add_system(out, document, place, name="system.gpu", text=device.get("name"), attrs=attrs, time=time)
        for reason in reasons:
            told = {"gpu": device["index"], "reason": reason, "samples": 1}
            add_system(out, document, place, name="system.throttle", text=reason, value=1.0, attrs=told, time=time)
        for process in processes:
            told = {"gpu": device["index"], **process}
            at = told.pop("line", place)
            named = process.get("process")
            add_system(out, document, at, name="system.gpu_process", text=named, attrs=told, time=time)


def _take(key: str, value: str, driver: dict[str, Any], devices: list[dict[str, Any]], *, line: int) -> None:
    """Keep one line of the report where it is one that is wanted; `key` is its path in lower case."""
    if key in {"driver version", "cuda version"}:
        driver["driver" if key == "driver version" else "cuda"] = value
    elif key == "timestamp":
        driver["time"] = first_full_date(value.encode())
    elif devices and key.startswith(_REASONS) and value == "Active":
        devices[-1]["reasons"].append(key.rsplit("/", 1)[-1].replace(" ", "_"))
    elif devices and key.startswith("processes/"):
        _take_process(key, value, devices[-1]["processes"], line=line)
    elif devices and value not in {"", "N/A"}:
        _take_reading(key, value, devices[-1])


def _take_reading(key: str, value: str, device: dict[str, Any]) -> None:
    if (name := _TEXTS.get(key)) is not None:
        device.setdefault(name, value)
    elif (name := _SIZES.get(key)) is not None:
        device.setdefault(name, size_in_bytes(value))
    elif (name := _NUMBERS.get(key)) is not None:
        if (known := reading(value, "pcie_width" if name.startswith("pcie_width") else name)) is not None:
            device.setdefault(name, known)
    elif key.startswith("ecc errors/"):
        _take_ecc(key.split("/")[1:], value, device)


def _take_ecc(parts: list[str], value: str, device: dict[str, Any]) -> None:
    """Add up the errors of all memories: by kind on newer devices, `Double Bit / Total` on older ones."""
    last = parts[-1]
    kind = None
    if "uncorrectable" in last or (parts[1:2] == ["double bit"] and last == "total"):
        kind = "uncorrected"
    elif "correctable" in last or (parts[1:2] == ["single bit"] and last == "total"):
        kind = "corrected"
    name = None if kind is None else _ECC.get((parts[0], kind))
    count = number_with_unit(value)
    if name is not None and count is not None:
        device[name] = device.get(name, 0.0) + count[0]


def _take_process(key: str, value: str, processes: list[dict[str, Any]], *, line: int) -> None:
    last = key.rsplit("/", 1)[-1]
    if last == "process id":
        processes.append({"pid": whole(value), "line": line})
    elif processes and last in {"name", "type"}:
        processes[-1]["process" if last == "name" else "type"] = value[:200]
    elif processes and last == "used gpu memory":
        processes[-1]["memory_bytes"] = size_in_bytes(value)

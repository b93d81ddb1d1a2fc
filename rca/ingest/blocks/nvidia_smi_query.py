"""The long report of `nvidia-smi -q`: one block of indented `Key : Value` lines a device."""

from __future__ import annotations

from typing import Any

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import add_system, claim, table_lines
from rca.ingest.cells import number_with_unit, size_in_bytes
from rca.ingest.document import Document

_DEVICE = re2.compile(r"GPU ([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])")
_LINE = re2.compile(r"(\s*)(\S[^:]*?)\s*(?::\s*(.*))?")
_MAX_LINES = 50_000
_WANTED = {
    "product name": "name",
    "fb memory usage/total": "memory_total_bytes",
    "fb memory usage/used": "memory_used_bytes",
    "utilization/gpu": "utilization",
    "temperature/gpu current temp": "temperature",
    "gpu power readings/average power draw": "power_w",
    "gpu power readings/power draw": "power_w",
    "power readings/power draw": "power_w",
    "power readings/power limit": "power_limit_w",
    "gpu power readings/current power limit": "power_limit_w",
    "clocks/sm": "sm_clock_mhz",
    "max clocks/sm": "sm_clock_max_mhz",
    "ecc errors/volatile/dram uncorrectable": "ecc_uncorrected",
    "ecc errors/aggregate/dram uncorrectable": "ecc_uncorrected_total",
    "ecc errors/aggregate/sram uncorrectable": "ecc_sram_uncorrected_total",
    "remapped rows/uncorrectable error": "remapped_rows",
    "remapped rows/pending": "remap_pending",
    "remapped rows/remapping failure occurred": "remap_failed",
    "retired pages/pending page blacklist": "retired_pages_pending",
    "pci/bus id": "bus_id",
}
_TEXTS = frozenset({"name", "bus_id", "remap_pending", "remap_failed", "retired_pages_pending"})
_REASONS = ("clocks throttle reasons/", "clocks event reasons/")


class NvidiaSmiQueryParser:
    """Adds `system.driver`, a `system.gpu` for each device and a `system.throttle` for each active reason."""

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
                devices.append({"index": len(devices), "bus_id": device[1], "line": place, "reasons": []})
                path = []
            elif match is None or (indent == 0 and match[3] is None):
                break
            else:
                path = [*(part for part in path if part[0] < indent), (indent, match[2].lower())]
                _take("/".join(part for _indent, part in path), (match[3] or "").strip(), driver, devices)
            end = place + 1
        if not devices and not driver:
            return line
        if driver:
            add_system(out, document, line, name="system.driver", text=driver.get("driver"), attrs=driver)
        for device in devices:
            place, reasons = device.pop("line"), device.pop("reasons")
            attrs = {**device, **driver}
            add_system(out, document, place, name="system.gpu", text=device.get("name"), attrs=attrs)
            for reason in reasons:
                told = {"gpu": device["index"], "reason": reason, "samples": 1}
                add_system(out, document, place, name="system.throttle", text=reason, value=1.0, attrs=told)
        return claim(document, line, end)


def _take(key: str, value: str, driver: dict[str, Any], devices: list[dict[str, Any]]) -> None:
    """Keep one line of the report where it is one that is wanted."""
    if key in {"driver version", "cuda version"}:
        driver["driver" if key == "driver version" else "cuda"] = value
    elif devices and key.startswith(_REASONS) and value == "Active":
        devices[-1]["reasons"].append(key.split("/", 1)[1].rsplit("/", 1)[-1].replace(" ", "_"))
    elif devices and value not in {"", "N/A"} and (name := _WANTED.get(key)) is not None:
        number = number_with_unit(value)
        read = size_in_bytes(value) if name.endswith("_bytes") else value if name in _TEXTS else number and number[0]
        if read is not None:
            devices[-1].setdefault(name, read)

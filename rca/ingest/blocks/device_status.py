"""Tables of devices that other tools print: `gpustat`, `dcgmi dmon`, `rocm-smi`."""

from __future__ import annotations

from typing import Any

import numpy as np
import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import add_system, claim, table_line, table_lines
from rca.ingest.logs.document import Document
from rca.ingest.machine.device_names import ROCM, dcgm_name, plain, reading
from rca.ingest.machine.device_readings import DeviceColumn, Rows, add_device_columns
from rca.ingest.tables.cells import number, number_with_unit, size_in_bytes, whole

MAX_ROWS = 200_000
_GPUSTAT = re2.compile(
    r"\[(\d{1,3})\]\s+(\S.*?)\s*\|\s*(\d+|\?+)\D{0,3}C,\s*(?:\d+\s*%,\s*)?(\d+|\?+)\s*%(?:[^|,]*,\s*(\d+|\?+)\s*/\s*(\d+|\?+)\s*W)?"
    r"[^|]*\|\s*(\d+)\s*/\s*(\d+)\s*MB\s*(?:\|(.*))?"
)
_GPUSTAT_PROCESS = re2.compile(r"(\S+?)(?:/(\d+))?\((\d+M|\?M?)\)")
_GPUSTAT_HEAD = re2.compile(r"(\S+)\s+[A-Z][a-z]{2} [A-Z][a-z]{2} .*\d\d:\d\d:\d\d.*")
_ENTITY = re2.compile(r"\s*(GPU|GPU-I|GPU-CI|Switch|CPU)\s+(\d{1,4})\s+(\S.*)")
_ROCM_ROW = re2.compile(r"\s*(\d{1,3})\s+(\S.*\d.*(?:%|W|c|C|Mhz|MHz).*)")
_ROCM_KEY = re2.compile(r"GPU\[(\d{1,3})\]\s*:\s*([^:]+?)\s*:\s*(\S.*?)\s*")
_ROCM_OTHER = ("=", "(", "GPU[", "WARNING", "Driver version", "-")


class GpuStatParser:
    """Adds one `system.gpu` a line of `gpustat`, and its processes."""

    name = "gpustat"
    triggers: tuple[str, ...] = (r"^\[\d{1,3}\]\s+\S.*\|.*C,.*%.*\|\s*\d+\s*/\s*\d+\s*MB",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the one line of a device."""
        match = _GPUSTAT.fullmatch(table_line(document, line).strip())
        if match is None:
            return line
        index = whole(match[1])
        processes = list(_GPUSTAT_PROCESS.finditer(match[9] or ""))
        host = _host_above(document, line)
        found = {
            "index": index,
            "name": match[2],
            "temperature": number(match[3]),
            "utilization": number(match[4]),
            "power_w": number(match[5] or ""),
            "power_limit_w": number(match[6] or ""),
            "memory_used_bytes": size_in_bytes(f"{match[7]}MiB"),
            "memory_total_bytes": size_in_bytes(f"{match[8]}MiB"),
            "processes": len(processes),
        }
        add_system(out, document, line, name="system.gpu", text=match[2], attrs=found, host=host)
        for process in processes:
            user, _, command = process[1].partition(":")
            attrs = {
                "gpu": index,
                "process": command or user,
                "user": user,
                "memory_bytes": size_in_bytes(f"{process[3]}iB"),
                "pid": whole(process[2] or ""),
            }
            add_system(out, document, line, name="system.gpu_process", text=process[1], attrs=attrs, host=host)
        return claim(document, line, line + 1)


def _host_above(document: Document, line: int) -> str | None:
    """Return the host that the head of gpustat names."""
    for place in range(line - 1, max(0, line - 40), -1):
        text = document.raw(place).strip()
        if not text.startswith("["):
            match = _GPUSTAT_HEAD.fullmatch(text)
            return None if match is None else match[1]
    return None


class DcgmiDmonParser:
    """Adds the columns of `dcgmi dmon` as metrics labelled with the device."""

    name = "dcgmi dmon"
    triggers: tuple[str, ...] = (r"^#\s?Entity\s+[A-Z0-9]{3,}",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows below the header at `line`; only whole devices count, not their instances."""
        heads = table_line(document, line).lstrip("# ").split()[1:]
        rows: list[list[str]] = []
        places: list[int] = []
        devices: list[int | str] = []
        end = line + 1
        for place, text in table_lines(document, line + 1, most=MAX_ROWS):
            match = _ENTITY.fullmatch(text.rstrip())
            if match is not None:
                cells = match[3].split()
                if match[1] == "GPU" and len(cells) == len(heads):
                    rows.append(cells)
                    places.append(place)
                    devices.append(whole(match[2]) or 0)
            elif text.strip() and not text.lstrip().startswith(("#", "ID")):
                break
            end = place + 1
        if not rows:
            return line
        columns = [
            DeviceColumn(name, [row[at] for row in rows])
            for at, head in enumerate(heads)
            if (name := dcgm_name(head)) is not None
        ]
        add_device_columns(out, columns, Rows(np.asarray(places, dtype=np.int64), devices))
        return claim(document, line, end)


class RocmSmiParser:
    """Adds a `system.gpu` for each device of `rocm-smi`, from its short table or from its `GPU[0] : key: value`."""

    name = "rocm-smi"
    triggers: tuple[str, ...] = (r"^=+\s*(?:ROCm System Management Interface|Concise Info)\s*=+",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the report whose title stands at `line`."""
        head: list[str] = []
        devices: dict[int, dict[str, Any]] = {}
        places: dict[int, int] = {}
        end = line + 1
        for place, text in table_lines(document, line + 1, most=2000):
            stripped = text.strip()
            if (key := _ROCM_KEY.fullmatch(stripped)) is not None:
                index = whole(key[1]) or 0
                places.setdefault(index, place)
                _take(devices.setdefault(index, {}), key[2], key[3])
            elif stripped.startswith(("GPU ", "Device ")):
                head = stripped.lower().split()
            elif head and (row := _ROCM_ROW.fullmatch(text.rstrip())) is not None:
                index = whole(row[1]) or 0
                places.setdefault(index, place)
                _take_row(devices.setdefault(index, {}), head, row[2])
            elif stripped and not stripped.startswith(_ROCM_OTHER):
                break
            end = place + 1
            if "End of ROCm" in stripped:
                break
        for index, found in devices.items():
            if found:
                attrs = {"index": index, **found}
                add_system(out, document, places[index], name="system.gpu", text=found.get("name"), attrs=attrs)
        return claim(document, line, end) if any(devices.values()) else line


_ATTRS = {
    "gpu_utilization": "utilization",
    "gpu_temperature": "temperature",
    "power": "power_w",
    "power_limit": "power_limit_w",
    "sm_clock": "sm_clock_mhz",
}
"""How a snapshot of a device calls what a series of readings calls otherwise."""


def _take(device: dict[str, Any], key: str, value: str) -> None:
    """Keep one `key: value` of a device where it is one that is known."""
    name = ROCM.get(plain(key))
    if plain(key) in {"card series", "device name", "card model"}:
        device.setdefault("name", value)
    elif name in {"gpu_memory_total", "gpu_memory_used"}:
        size = size_in_bytes(value)
        if size is not None:
            device[f"{name.removeprefix('gpu_')}_bytes"] = size
    elif name is not None and (known := reading(value, name)) is not None:
        device.setdefault(_ATTRS.get(name, name), known)


def _take_row(device: dict[str, Any], head: list[str], text: str) -> None:
    """Keep a row of the short table: its cells are known by their units, the heads tell which clock comes first."""
    cells = text.split()
    clocks = [cell for cell in cells if cell.lower().endswith("mhz")]
    order = [word for word in head if word in {"sclk", "mclk"}]
    for word, cell in zip(order, clocks, strict=False):
        _take(device, word, cell)
    watts = [cell for cell in cells if cell.endswith("W") and number_with_unit(cell) is not None]
    for word, cell in zip(("power", "pwrcap"), watts, strict=False):
        _take(device, word, cell)
    heat = next((cell for cell in cells if cell.endswith(("c", "C")) and cell[:1].isdigit()), None)
    if heat is not None:
        _take(device, "temp", heat.rstrip("cC").rstrip("°"))
    shares = [cell for cell in cells if cell.endswith("%")]
    if len(shares) >= 2:
        _take(device, "vram%", shares[-2])
        _take(device, "gpu%", shares[-1])

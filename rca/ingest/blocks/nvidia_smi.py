"""The table that `nvidia-smi` prints, old and new layout: driver, devices, processes."""

from __future__ import annotations

from typing import Any

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import add_system, claim, table_lines
from rca.ingest.logs.document import Document
from rca.ingest.tables.cells import size_in_bytes, whole

_HEADER = re2.compile(
    r"(?:NVIDIA-SMI|NVITOP)\s+([\w.]+)\s+(?:KMD|Driver) Version:\s*([\w.]+)"
    r"(?:\s+CUDA(?: UMD| Driver)? Version:\s*([\w./]+))?"
)
_NAME = re2.compile(r"\s*(\d{1,3})\s+(\S.*?)\s+(On|Off|N/A)\s*")
_BUS = re2.compile(r"\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s+(\S+)\s*")
_STATE = re2.compile(r"\s*(\S+)\s+(\d+C|N/A|ERR!)\s+(P\d+|N/A|ERR!)\s+(\S+?W?|N/A|ERR!)\s*/\s*(\S+)\s*")
_MEMORY = re2.compile(r"\s*([\d.]+[KMG]iB)\s*/\s*([\d.]+[KMG]iB)\s*")
_USE = re2.compile(r"\s*(\d+%|N/A|ERR!)\s+(\S.*?)\s*")
_PROCESS = re2.compile(
    r"\|?\s*(\d{1,3})\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+)?(\d+)\s+([CGM+]+)\s+(\S.*?)\s+(\d+MiB|N/A)\s*\|?\s*"
)
_SLICE = re2.compile(
    r"\|?\s*(\d{1,3})\s+(\d{1,3})\s+(\d{1,3})\s+(\d{1,3})\s*\|\s*(\d+MiB)\s*/\s*(\d+MiB)\s*\|\s*\d+\s+(\d+|N/A)\s*\|.*"
)
_NVITOP_PROCESS = re2.compile(
    r"\|?\s*(\d{1,3})\s+(\d+)\s+([CGM+X]+)\s+(\S+)\s+([\d.]+[KMG]iB|N/A)\s+\S+\s+\S+\s+\S+\s+\S+\s+(\S.*?)\s*\|?\s*"
)
_BOX = str.maketrans({"│": "|", "╒": "+", "├": "+", "╞": "+", "╘": "+", "╤": "+", "╪": "+"})
_WHOLE_NUMBER = re2.compile(r"(\d+(?:\.\d+)?)")
_MAX_LINES = 600


class NvidiaSmiParser:
    """Adds `system.driver`, a `system.gpu` for each device, `system.mig_device` for slices, `system.gpu_process`."""

    name = "nvidia-smi"
    triggers: tuple[str, ...] = (r"(?:NVIDIA-SMI|NVITOP)\s+[\d.]+\s+(?:KMD|Driver) Version",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the table whose header stands at `line`."""
        devices: list[dict[str, Any]] = []
        processes: list[dict[str, Any]] = []
        slices: list[dict[str, Any]] = []
        driver: dict[str, Any] = {}
        end = line
        for number, text in table_lines(document, line, most=_MAX_LINES, ruled=True):
            plain = text.strip().translate(_BOX)
            if number > line and (not plain.startswith(("|", "+")) and plain):
                break
            if number > line + 1 and _HEADER.search(plain) is not None and driver:
                break
            end = number + 1 if plain else end
            if (header := _HEADER.search(plain)) is not None:
                driver = {"driver": header[2], "cuda": header[3], "line": number}
            elif (process := _PROCESS.fullmatch(plain)) is not None:
                processes.append(_process(process, number))
            elif (shown := _NVITOP_PROCESS.fullmatch(plain)) is not None:
                processes.append(_nvitop_process(shown, number))
            elif (piece := _SLICE.fullmatch(plain)) is not None:
                slices.append(_slice(piece, number))
            else:
                _device_line(plain.strip("|").split("|"), number, devices)
        if not driver:
            return line
        known = {key: value for key, value in driver.items() if key != "line"}
        add_system(out, document, driver["line"], name="system.driver", text=known["driver"], attrs=known)
        for device in devices:
            place = device.pop("line")
            count = sum(process["gpu"] == device["index"] for process in processes)
            attrs = {**device, **known, "processes": count}
            add_system(out, document, place, name="system.gpu", text=device["name"], attrs=attrs)
        for found in slices:
            place = found.pop("line")
            add_system(out, document, place, name="system.mig_device", attrs=found)
        for process in processes:
            place = process.pop("line")
            add_system(out, document, place, name="system.gpu_process", text=process["process"], attrs=process)
        return claim(document, line, end)


def _device_line(cells: list[str], number: int, devices: list[dict[str, Any]]) -> None:
    """Take one of the two or three lines that describe a device."""
    if len(cells) < 2:
        return
    bus = _BUS.fullmatch(cells[1])
    if bus is not None and (name := _NAME.fullmatch(cells[0])) is not None:
        devices.append(
            {
                "index": whole(name[1]),
                "name": name[2],
                "persistence": name[3],
                "bus_id": bus[1],
                "ecc_uncorrected": whole(cells[2]) if len(cells) > 2 else None,
                "line": number,
            }
        )
    elif devices and "memory_total_bytes" not in devices[-1] and (memory := _MEMORY.fullmatch(cells[1])) is not None:
        device = devices[-1]
        device["memory_used_bytes"], device["memory_total_bytes"] = map(size_in_bytes, memory.groups())
        if (state := _STATE.fullmatch(cells[0])) is not None:
            device |= {
                "fan": _number(state[1]),
                "temperature": _number(state[2]),
                "performance_state": state[3],
                "power_w": _number(state[4]),
                "power_limit_w": _number(state[5]),
            }
        if len(cells) > 2 and (use := _USE.fullmatch(cells[2])) is not None:
            device |= {"utilization": _number(use[1]), "compute_mode": use[2]}
        device["unreadable"] = "ERR!" in "".join(cells) or None


def _slice(match: Any, number: int) -> dict[str, Any]:
    """Return one MIG device: a slice of a GPU with memory of its own."""
    return {
        "gpu": whole(match[1]),
        "instance": whole(match[2]),
        "device": whole(match[4]),
        "memory_used_bytes": size_in_bytes(match[5]),
        "memory_total_bytes": size_in_bytes(match[6]),
        "ecc_uncorrected": whole(match[7]),
        "line": number,
    }


def _process(match: Any, number: int) -> dict[str, Any]:
    return {
        "gpu": whole(match[1]),
        "pid": whole(match[2]),
        "type": match[3],
        "process": match[4],
        "memory_bytes": size_in_bytes(match[5]),
        "line": number,
    }


def _nvitop_process(match: Any, number: int) -> dict[str, Any]:
    return {
        "gpu": whole(match[1]),
        "pid": whole(match[2]),
        "type": match[3],
        "user": match[4],
        "memory_bytes": size_in_bytes(match[5]),
        "process": match[6][:200],
        "line": number,
    }


def _number(text: str) -> float | None:
    found = _WHOLE_NUMBER.search(text)
    return None if found is None else float(found[1])

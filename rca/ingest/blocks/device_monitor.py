"""Device readings that tools print line by line: `nvidia-smi dmon`, `gpustat`, and query tables inside logs."""

from __future__ import annotations

import numpy as np
import re2

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.blocks.lines import add_system, claim, table_line, table_lines
from rca.ingest.cells import number, size_in_bytes, whole
from rca.ingest.csv_files import read_table
from rca.ingest.document import Document
from rca.ingest.gpu_query import add_readings
from rca.ingest.metric_table import add_metrics

MAX_ROWS = 200_000
_DMON_NAMES = {
    "pwr": "power",
    "gtemp": "gpu_temperature",
    "mtemp": "gpu_memory_temperature",
    "sm": "gpu_utilization",
    "mem": "gpu_memory_utilization",
    "mclk": "memory_clock",
    "pclk": "sm_clock",
    "fb": "gpu_memory_used",
    "pviol": "power_violation",
    "tviol": "thermal_violation",
    "rxpci": "pcie_rx",
    "txpci": "pcie_tx",
}
"""Columns of `nvidia-smi dmon` (its manual page); violations are percent of time (power) or a flag (thermal)."""
_GPUSTAT = re2.compile(
    r"\[(\d{1,3})\]\s+(\S.*?)\s*\|\s*(\d+|\?+)\D{0,3}C,\s*(?:\d+\s*%,\s*)?(\d+|\?+)\s*%(?:,\s*(\d+|\?+)\s*/\s*(\d+|\?+)\s*W)?"
    r"\s*\|\s*(\d+)\s*/\s*(\d+)\s*MB\s*\|(.*)"
)
_GPUSTAT_PROCESS = re2.compile(r"(\S+?)(?:/(\d+))?\((\d+M)\)")


class DmonParser:
    """Adds the columns of `nvidia-smi dmon` as metrics labelled with the device."""

    name = "nvidia-smi dmon"
    triggers: tuple[str, ...] = (r"^#\s*(?:Date\s+Time\s+)?gpu\s+\w+.*\b(?:sm|pwr|pclk|gtemp)\b",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows below the header at `line`, repeated headers included."""
        names = table_line(document, line).lstrip("# ").split()
        if "gpu" not in names:
            return line
        device = names.index("gpu")
        rows: list[list[str]] = []
        places: list[int] = []
        end = line + 1
        for place, text in table_lines(document, line + 1, most=MAX_ROWS):
            words = text.split()
            if text.lstrip().startswith("#"):
                if "gpu" in words and text.lstrip("# ").split() != names:
                    break
            elif len(words) == len(names) and whole(words[device]) is not None:
                rows.append(words)
                places.append(place)
            elif words:
                break
            end = place + 1
        if not rows:
            return line
        columns = {name: [number(row[at]) for row in rows] for at, name in enumerate(names) if name in _DMON_NAMES}
        if "fb" in columns:
            columns["fb"] = [None if value is None else value / 1024 for value in columns["fb"]]
        add_metrics(
            out,
            columns,
            lines=np.asarray(places, dtype=np.int64),
            names=_DMON_NAMES,
            attrs=[{"gpu": whole(row[device])} for row in rows],
        )
        return claim(document, line, end)


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
        processes = list(_GPUSTAT_PROCESS.finditer(match[9]))
        found = {
            "index": index,
            "name": match[2],
            "temperature": number(match[3]),
            "utilization": number(match[4]),
            "power_w": number(match[5]),
            "power_limit_w": number(match[6]),
            "memory_used_bytes": size_in_bytes(f"{match[7]}MiB"),
            "memory_total_bytes": size_in_bytes(f"{match[8]}MiB"),
            "processes": len(processes),
        }
        add_system(out, document, line, name="system.gpu", text=match[2], attrs=found)
        for process in processes:
            pid = whole(process[2] or "")
            size = size_in_bytes(f"{process[3]}iB")
            attrs = {"gpu": index, "process": process[1], "memory_bytes": size, "pid": pid}
            add_system(out, document, line, name="system.gpu_process", text=process[1], attrs=attrs)
        return claim(document, line, line + 1)


class GpuQueryParser:
    """Reads a `nvidia-smi --query-gpu --format=csv` table that stands inside a log."""

    name = "gpu readings"
    triggers: tuple[str, ...] = (
        r"^(?:timestamp|index|name|uuid|gpu_uuid|pstate), .*(?:utilization\.gpu|temperature\.gpu|power\.draw|clocks)",
        r"^(?:timestamp|index|name|uuid|gpu_uuid|pstate), .*memory\.used",
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

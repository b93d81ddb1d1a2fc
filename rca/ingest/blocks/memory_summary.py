"""What the allocator holds and cannot give back: `torch.cuda.memory_summary()` and `torch.cuda.memory_stats()`."""

from __future__ import annotations

from typing import Any

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import claim, table_lines
from rca.ingest.logs.document import Document
from rca.ingest.tables.cells import size_in_bytes, whole

_DEVICE = re2.compile(r"PyTorch CUDA memory summary, device ID (\d+)")
_OOMS = re2.compile(r"CUDA OOMs:\s*(\d+).*cudaMalloc retries:\s*(\d+)")
_ROW = re2.compile(r"\|\s*([A-Za-z][\w -]*?)\s*\|([^|]+)\|([^|]+)\|([^|]+)\|([^|]+)\|")
_SIZES = {
    "allocated memory": "allocated",
    "active memory": "active",
    "requested memory": "requested",
    "gpu reserved memory": "reserved",
    "non-releasable memory": "inactive",
}
_COUNTS = {
    "allocations": "allocations",
    "gpu reserved segments": "segments",
    "non-releasable allocs": "inactive_blocks",
}
_METRICS = {
    "memory_allocated": "allocated_bytes",
    "memory_reserved": "reserved_bytes",
    "memory_allocated_peak": "allocated_peak_bytes",
    "memory_inactive": "inactive_bytes",
}
_SCALES = {"": 1, "K": 1000, "M": 1000**2}


class MemorySummaryParser:
    """Adds `system.memory_summary` and the memory metrics it holds, at the step it was printed."""

    name = "memory summary"
    triggers: tuple[str, ...] = (r"PyTorch CUDA memory summary, device ID \d",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the table whose title stands at `line`."""
        device = _DEVICE.search(document.raw(line))
        if device is None:
            return line
        found: dict[str, Any] = {"device": whole(device[1])}
        end = line + 1
        for number, text in table_lines(document, line + 1, most=80, ruled=True):
            plain = text.strip()
            if not plain.startswith("|"):
                break
            end = number + 1
            if (counts := _OOMS.search(plain)) is not None:
                found |= {"ooms": whole(counts[1]), "retries": whole(counts[2])}
            elif (row := _ROW.fullmatch(plain)) is not None:
                found |= _row(row[1].lower(), row[2], row[3])
        if "allocated_bytes" not in found:
            return line
        _add(out, document, line, found, title="PyTorch CUDA memory summary")
        return claim(document, line, end)


_STATISTIC = re2.compile(r"'([a-z_]+(?:\.[a-z_]+)*)'[,:]\s*(\d{1,19})")
_STATISTICS = {
    "allocated_bytes.all.current": "allocated_bytes",
    "allocated_bytes.all.peak": "allocated_peak_bytes",
    "active_bytes.all.current": "active_bytes",
    "active_bytes.all.peak": "active_peak_bytes",
    "requested_bytes.all.current": "requested_bytes",
    "reserved_bytes.all.current": "reserved_bytes",
    "reserved_bytes.all.peak": "reserved_peak_bytes",
    "inactive_split_bytes.all.current": "inactive_bytes",
    "inactive_split_bytes.all.peak": "inactive_peak_bytes",
    "inactive_split.all.current": "inactive_blocks",
    "allocation.all.current": "allocations",
    "segment.all.current": "segments",
    "num_alloc_retries": "retries",
    "num_ooms": "ooms",
}


class MemoryStatsParser:
    """Adds what a summary would for a printed `torch.cuda.memory_stats()`, on one line or one key a line."""

    name = "memory stats"
    triggers: tuple[str, ...] = (r"'a(?:llocated|ctive)_bytes\.all\.(?:allocated|current)'[,:]\s*\d",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the keys from `line` on."""
        found: dict[str, Any] = {}
        end = line
        for number, text in table_lines(document, line, most=200):
            pairs = _STATISTIC.findall(text)
            if not pairs:
                break
            found |= {_STATISTICS[key]: int(value) for key, value in pairs if key in _STATISTICS}
            end = number + 1
        if "allocated_bytes" not in found:
            return line
        _add(out, document, line, found, title="torch.cuda.memory_stats")
        return claim(document, line, end)


def _add(out: EventBuilder, document: Document, line: int, found: dict[str, Any], *, title: str) -> None:
    rank = document.prefix(line).rank
    place: dict[str, Any] = {
        "line": line,
        "offset": document.offset(line),
        "time": document.time(line),
        "step": document.step(line),
        "rank": rank,
    }
    out.add(kind="system", name="system.memory_summary", text=title, attrs=found, **place)
    # Where one process prints several devices, each has a curve of its own.
    device = found.get("device")
    attrs = {"gpu": device} if device and rank is None else None
    for name, key in _METRICS.items():
        if found.get(key) is not None:
            out.add(kind="metric", name=name, value=found[key] / 1024**3, unit="GiB", attrs=attrs, **place)


def _row(label: str, current: str, peak: str) -> dict[str, Any]:
    """Return the current and the peak value of one row under its short name."""
    if (name := _SIZES.get(label)) is not None:
        return {f"{name}_bytes": _size(current), f"{name}_peak_bytes": _size(peak)}
    if (name := _COUNTS.get(label)) is not None:
        return {name: _count(current), f"{name}_peak": _count(peak)}
    return {}


def _size(cell: str) -> int | None:
    return size_in_bytes(cell.strip())


def _count(cell: str) -> int | None:
    number, _, scale = cell.strip().partition(" ")
    count = whole(number)
    return None if count is None else count * _SCALES.get(scale.strip(), 1)

"""Tables about the host: file systems (`df`), memory (`free`), processes (`top`), limits (`ulimit -a`), `ls -l`."""

from __future__ import annotations

from typing import Any

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import add_system, claim, table_line, table_lines
from rca.ingest.logs.document import Document
from rca.ingest.tables.cells import number, size_in_bytes, whole

_DF_ROW = re2.compile(r"(\S+)\s+([\d.]+[KMGTP]?i?)\s+([\d.]+[KMGTP]?i?)\s+([\d.]+[KMGTP]?i?|-)\s+(\d+%|-)\s+(/.*|\S+)")
_KILOBYTES = ("1K-blocks", "1024-blocks")
_FREE_ROW = re2.compile(r"\s*(Mem|Swap|Total|-/\+ buffers/cache):\s+(\S.*)")
_FREE_UNITS = ((1 << 12, 1024**3), (1 << 20, 1024**2))
"""A host whose memory is a smaller bare number than this was printed with `-g` or `-m`; without, it counts KiB."""
_TOP_ROW = re2.compile(
    r"\s*(\d+)\s+(\S+)\s+(?:\d+|-\d+|rt)\s+-?\d+\s+(\S+)\s+(\S+)\s+(\S+)\s+([A-Z])\s+([\d.]+)\s+([\d.]+)\s+(\S+)\s+(\S.*)"
)
_TOP_CPU = re2.compile(r"%?Cpu\(s\):\s*([\d.]+)[ %]*us.*?([\d.]+)[ %]*id")
_TOP_WAIT = re2.compile(r"([\d.]+)[ %]*wa")
_TOP_MEMORY = re2.compile(r"([KMG])iB Mem\s*:\s*([\d.]+)\s*total,\s*([\d.]+)\s*free,\s*([\d.]+)\s*used")
_TOP_HEAD = ("Tasks", "Threads", "%", "MiB", "KiB", "GiB", "Mem", "Swap")
_LIMIT = re2.compile(r"(\S.*?)\s+\((?:[^()]*, )?(-[a-zA-Z])\)\s+(unlimited|\d+)\s*")
_LS_ROW = re2.compile(
    r"([-dlbcps][-rwxsStT]{9})[.+@]?\s+\d+\s+\S+\s+\S+\s+([\d.,]+[KMGTP]?)\s+\S+\s+\S+\s+\S+\s+(\S.*)"
)
_LS_FOLDER = re2.compile(r"(\S.*):")
_MAX_FILES = 500


class DiskFreeParser:
    """Adds one `system.filesystem` a row of `df`; its value is the share in use."""

    name = "df"
    triggers: tuple[str, ...] = (r"^Filesystem\s+.*(?:Use%|Capacity|iused).*Mounted on",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows below the header at `line`."""
        kilobytes = any(word in table_line(document, line) for word in _KILOBYTES)
        end = line + 1
        for place, text in table_lines(document, line + 1):
            match = _DF_ROW.fullmatch(text.strip())
            if match is None:
                break
            size, used, free = (_size(match[column], kilobytes=kilobytes) for column in (2, 3, 4))
            share = number(match[5].rstrip("%"))
            attrs = {
                "filesystem": match[1],
                "mount": match[6],
                "size_bytes": size,
                "used_bytes": used,
                "available_bytes": free,
            }
            value = None if share is None else share / 100
            add_system(out, document, place, name="system.filesystem", text=match[6], value=value, attrs=attrs)
            end = place + 1
        return claim(document, line, end) if end > line + 1 else line


class FreeParser:
    """Adds `system.memory` with the host memory that `free` reports, in its old, new and wide layouts."""

    name = "free"
    triggers: tuple[str, ...] = (r"^\s+total\s+used\s+free\s+shared",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows below the header at `line`."""
        names = table_line(document, line).split()
        rows: dict[str, dict[str, str]] = {}
        end = line + 1
        for place, text in table_lines(document, line + 1, most=5):
            match = _FREE_ROW.fullmatch(text.rstrip())
            if match is None:
                break
            end = place + 1
            # The row without caches has no total.
            heads = names[1:] if match[1].startswith("-") else names
            rows[match[1]] = dict(zip(heads, match[2].split(), strict=False))
        memory, swap = rows.get("Mem", {}), rows.get("Swap", {})
        unit = _free_unit(memory.get("total", ""))
        total = _free_size(memory.get("total"), unit)
        if not total:
            return line
        free = rows.get("-/+ buffers/cache", {}).get("free")
        available = _free_size(memory.get("available", free), unit)
        used = _free_size(memory.get("used"), unit)
        found = {
            "total_bytes": total,
            "used_bytes": used,
            "available_bytes": available,
            "shared_bytes": _free_size(memory.get("shared"), unit),
            "swap_total_bytes": _free_size(swap.get("total"), unit),
            "swap_used_bytes": _free_size(swap.get("used"), unit),
        }
        # Without a column of its own, `used` of the old layout counts the caches, which are given back on demand.
        in_use = total - available if free is not None and available is not None else used or 0
        add_system(out, document, line, name="system.memory", value=in_use / total, attrs=found)
        return claim(document, line, end)


def _free_unit(total: str) -> int:
    count = whole(total)
    return 1024 if count is None else next((unit for top, unit in _FREE_UNITS if count < top), 1024)


def _free_size(cell: str | None, unit: int) -> int | None:
    if cell is None:
        return None
    count = whole(cell)
    return size_in_bytes(cell.rstrip("i")) if count is None else count * unit


class TopParser:
    """Adds `system.load` for the head of `top` and one `system.process` a row."""

    name = "top"
    triggers: tuple[str, ...] = (r"^top - \d\d:\d\d:\d\d up",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read one screen of top."""
        end = line + 1
        for place, text in table_lines(document, line + 1, most=400):
            if text.startswith("top - "):
                break
            if (cpu := _TOP_CPU.search(text)) is not None:
                shares = {"user_percent": number(cpu[1]), "idle_percent": number(cpu[2])}
                if (wait := _TOP_WAIT.search(text)) is not None:
                    shares["iowait_percent"] = number(wait[1])
                add_system(out, document, place, name="system.load", value=shares["user_percent"], attrs=shares)
            elif (memory := _TOP_MEMORY.search(text)) is not None:
                total, used = (size_in_bytes(f"{memory[group]}{memory[1]}iB") for group in (2, 4))
                if total and used is not None:
                    sizes = {"total_bytes": total, "used_bytes": used}
                    add_system(out, document, place, name="system.memory", value=used / total, attrs=sizes)
            elif (row := _TOP_ROW.fullmatch(text.rstrip())) is not None:
                attrs: dict[str, Any] = {
                    "pid": whole(row[1]),
                    "resident_bytes": _size(row[4].upper(), kilobytes=True),
                    "state": row[6],
                    "cpu_percent": number(row[7]),
                    "memory_percent": number(row[8]),
                    "command": row[10][:200],
                }
                add_system(out, document, place, name="system.process", text=row[10], value=number(row[7]), attrs=attrs)
            elif text.strip() and not text.startswith(_TOP_HEAD) and "PID" not in text:
                break
            end = place + 1
        return claim(document, line, end)


class LimitsParser:
    """Adds one `system.limit` a line of `ulimit -a`."""

    name = "ulimit"
    triggers: tuple[str, ...] = (r"\((?:[a-z0-9-]+, )?-[a-zA-Z]\)\s+(?:unlimited|\d+)$",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the one line of a limit."""
        match = _LIMIT.fullmatch(table_line(document, line).strip())
        if match is None:
            return line
        value = None if match[3] == "unlimited" else number(match[3])
        attrs = {"limit": match[1], "flag": match[2], "unlimited": match[3] == "unlimited"}
        add_system(out, document, line, name="system.limit", text=match[1], value=value, attrs=attrs)
        return claim(document, line, line + 1)


class ListingParser:
    """Adds `files.listing` with the names and sizes that `ls -l` shows."""

    name = "ls -l"
    triggers: tuple[str, ...] = (
        r"^total [\d.,]+[KMGTP]?$",
        r"-[-r][-w][-xsS][-r][-w][-xsS][-r][-w][-xtT][.+@]?\s+\d+\s+\S+\s+\S+\s+[\d.,]+[KMGTP]?\s+\S+\s",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the listing that starts at `line`, the folders below it included."""
        files: dict[str, int] = {}
        folder = ""
        end, rows = line + 1, 0
        for place, text in table_lines(document, line, most=20_000):
            plain = text.strip()
            if (row := _LS_ROW.fullmatch(plain)) is not None:
                rows += 1
                size = _size(row[2].replace(",", ""), kilobytes=False)
                if row[1].startswith("-") and size is not None and len(files) < _MAX_FILES:
                    files[folder + row[3].split(" -> ", maxsplit=1)[0][:200]] = size
            elif (head := _LS_FOLDER.fullmatch(plain)) is not None and len(plain) < 200:
                folder = "" if head[1] == "." else f"{head[1].removeprefix('./')}/"
            elif plain and not plain.startswith("total "):
                break
            end = place + 1 if plain else end
        if not rows:
            return line
        empty = [name for name, size in files.items() if size == 0]
        attrs = {"files": files, "count": len(files), "empty": empty}
        add_system(out, document, line, name="files.listing", kind="artifact", value=float(len(files)), attrs=attrs)
        return claim(document, line, end)


def _size(cell: str, *, kilobytes: bool) -> int | None:
    """Read a size cell; a bare number counts KiB where the table says so."""
    plain = cell.strip().rstrip("i")
    if kilobytes and (count := whole(plain)) is not None:
        return count * 1024
    return size_in_bytes(plain)

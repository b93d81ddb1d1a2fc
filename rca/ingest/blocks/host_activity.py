"""What a host does over time: `vmstat`, `iostat`, `sar`, `pidstat`, `ps aux`."""

from __future__ import annotations

from typing import Any

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import add_system, claim, table_line, table_lines
from rca.ingest.logs.document import Document
from rca.ingest.tables.cells import number, whole

_MOST_ROWS = 500
_CPU_HEADS = {"us": "user_percent", "sy": "system_percent", "id": "idle_percent", "wa": "iowait_percent"}
_SAR_CPU = {
    "%user": "user_percent",
    "%usr": "user_percent",
    "%system": "system_percent",
    "%iowait": "iowait_percent",
    "%idle": "idle_percent",
}
_DISK = {
    "%util": "utilization",
    "r_await": "read_wait_ms",
    "w_await": "write_wait_ms",
    "await": "wait_ms",
    "rkB/s": "read_kb_s",
    "wkB/s": "write_kb_s",
}
_AVERAGE = "Average:"
_PS = re2.compile(
    r"(\S+)\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s+(\d+)\s+(\d+)\s+(\S+)\s+([A-Z][\w<+]*)\s+(\S+)\s+([\d:.-]+)\s+(\S.*)"
)
_KEPT_PROCESSES = 60
_TIMED = re2.compile(r"(?:\d\d:\d\d:\d\d(?: [AP]M)?|Average:)\s+(\S.*)")


class VmstatParser:
    """Adds one `system.load` a row of `vmstat`: processor time, waiting for disks, swapping."""

    name = "vmstat"
    triggers: tuple[str, ...] = (r"^\s*r\s+b\s+swpd\s+free\s+(?:buff|inact)\s",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows below the header at `line`; the first one is an average since the host started."""
        names = table_line(document, line).split()
        rows: list[tuple[int, dict[str, float]]] = []
        end = line + 1
        for place, text in table_lines(document, line + 1):
            cells = [number(word) for word in text.split()[: len(names)]]
            if len(cells) == len(names) and None not in cells:
                rows.append((place, {name: cell for name, cell in zip(names, cells, strict=True) if cell is not None}))
            elif "swpd" not in text and "memory" not in text:
                break
            end = place + 1
        for place, row in (rows[1:] or rows)[-_MOST_ROWS:]:
            attrs: dict[str, Any] = {key: row[name] for name, key in _CPU_HEADS.items() if name in row}
            attrs |= {"runnable": row.get("r"), "blocked": row.get("b")}
            attrs |= {"swap_in": row.get("si"), "swap_out": row.get("so")}
            add_system(out, document, place, name="system.load", value=row.get("us"), attrs=attrs)
        return claim(document, line, end) if rows else line


class IostatParser:
    """Adds `system.load` for the processor part of `iostat` and one `system.disk` a device."""

    name = "iostat"
    triggers: tuple[str, ...] = (r"^avg-cpu:\s+%user", r"^Device:?\s+.*(?:%util|tps|r/s)")

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the part whose header stands at `line`."""
        names = table_line(document, line).split()
        if names[0] == "avg-cpu:":
            cells = table_line(document, line + 1).split() if line < len(document) else []
            known = {
                _SAR_CPU[name]: number(cell) for name, cell in zip(names[1:], cells, strict=False) if name in _SAR_CPU
            }
            if None in known.values() or "idle_percent" not in known:
                return line
            add_system(out, document, line + 1, name="system.load", value=known.get("user_percent"), attrs=known)
            return claim(document, line, line + 2)
        end = line + 1
        for place, text in table_lines(document, line + 1, most=500):
            cells = text.split()
            if len(cells) != len(names):
                break
            row = {key: number(cells[names.index(name)]) for name, key in _DISK.items() if name in names}
            attrs = {"device": cells[0], **row}
            add_system(
                out, document, place, name="system.disk", text=cells[0], value=row.get("utilization"), attrs=attrs
            )
            end = place + 1
        return claim(document, line, end) if end > line + 1 else line


class SarParser:
    """Adds `system.load`, `system.memory` or `system.process` for the rows of `sar -u`, `sar -r` and `pidstat`."""

    name = "sar"
    triggers: tuple[str, ...] = (
        r"^\d\d:\d\d:\d\d(?: [AP]M)?\s+.*%idle\b",
        r"^\d\d:\d\d:\d\d(?: [AP]M)?\s+kbmemfree\b.*%memused",
        r"^\d\d:\d\d:\d\d(?: [AP]M)?\s+UID\s+PID\b.*%CPU",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows below the header at `line`; the rows of single processors are passed over."""
        head = _TIMED.fullmatch(document.raw(line).strip())
        if head is None:
            return line
        names = head[1].split()
        end = line + 1
        for place in range(line + 1, min(len(document), line + _MOST_ROWS) + 1):
            text = document.raw(place).strip()
            match = _TIMED.fullmatch(text)
            if match is None or match[1].split()[: len(names)] == names:
                if text and match is None:
                    break
                continue
            cells = match[1].split()
            row = dict(zip(names, cells, strict=False))
            if ("PID" in row or row.get("CPU", "all") in {"all", "-"}) and not text.startswith(_AVERAGE):
                _add_row(out, document, place, row, cells[len(names) - 1 :])
            end = place + 1
        return claim(document, line, end) if end > line + 1 else line


def _add_row(out: EventBuilder, document: Document, place: int, row: dict[str, str], rest: list[str]) -> None:
    if "PID" in row:
        if whole(row["PID"]) is not None and (share := number(row.get("%CPU", ""))) is not None:
            command = " ".join(rest)[:200]
            attrs: dict[str, Any] = {"pid": whole(row["PID"]), "cpu_percent": share, "command": command}
            add_system(out, document, place, name="system.process", text=command, value=share, attrs=attrs)
    elif "%memused" in row:
        free, used, share = number(row.get("kbmemfree", "")), number(row.get("kbmemused", "")), number(row["%memused"])
        if free is not None and used is not None and share is not None:
            available = number(row.get("kbavail", ""))
            attrs = {
                "total_bytes": int((free + used) * 1024),
                "used_bytes": int(used * 1024),
                "available_bytes": None if available is None else int(available * 1024),
            }
            part = share / 100 if available is None or not free + used else 1 - available / (free + used)
            add_system(out, document, place, name="system.memory", value=part, attrs=attrs)
    else:
        known = {_SAR_CPU[name]: number(cell) for name, cell in row.items() if name in _SAR_CPU}
        add_system(out, document, place, name="system.load", value=known.get("user_percent"), attrs=known)


class ProcessListParser:
    """Adds one `system.process` for the largest and busiest processes of `ps aux`, and for those that hang."""

    name = "ps"
    triggers: tuple[str, ...] = (r"^USER\s+PID\s+%CPU\s+%MEM\s+VSZ\s+RSS\s",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows below the header at `line`."""
        rows: list[tuple[int, dict[str, Any]]] = []
        end = line + 1
        for place, text in table_lines(document, line + 1, most=20_000):
            match = _PS.fullmatch(text.strip())
            if match is None:
                break
            attrs = {
                "user": match[1],
                "pid": whole(match[2]),
                "cpu_percent": number(match[3]),
                "memory_percent": number(match[4]),
                "resident_bytes": (whole(match[6]) or 0) * 1024,
                "state": match[8][:1],
                "command": match[11][:200],
            }
            rows.append((place, attrs))
            end = place + 1
        stuck = [row for row in rows if row[1]["state"] in {"D", "Z"}]
        large = sorted(rows, key=lambda row: (row[1]["cpu_percent"], row[1]["resident_bytes"]), reverse=True)
        kept = dict([*large[: _KEPT_PROCESSES // 2], *stuck[: _KEPT_PROCESSES // 2]])
        for place, attrs in sorted(kept.items()):
            share = attrs["cpu_percent"]
            add_system(out, document, place, name="system.process", text=attrs["command"], value=share, attrs=attrs)
        return claim(document, line, end) if rows else line

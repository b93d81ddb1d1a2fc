"""The kernel's report when it kills for lack of memory: who asked, which limit was reached, who held how much."""

from __future__ import annotations

from typing import Any

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import add_system, table_line, table_lines
from rca.ingest.logs.document import Document
from rca.ingest.tables.cells import whole

_INVOKED = re2.compile(r".*?(\S+) invoked oom-killer: .*?order=(\d+)")
_LIMIT = re2.compile(r".*?\bmemory: usage (\d+)kB, limit (\d+)kB")
_TASK = re2.compile(
    r".*?\[\s*(\d+)\]\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(?:\d+\s+){0,3}(\d+)\s+(\d+)\s+(-?\d+)\s+(\S.*?)\s*"
)
_SUMMARY = re2.compile(r".*?oom-kill:constraint=(CONSTRAINT_\w+),")
_CGROUP = re2.compile(r"\boom_memcg=([^,]+),")
_KILLED = re2.compile(r".*?[Kk]ill(?:ed)? process (\d+)(?: \(([^)]+)\))?.*?anon-rss:(\d+)kB(?:.*?shmem-rss:(\d+)kB)?")
_PAGE = 4096
"""Bytes of a page on x86-64; the table of tasks counts pages."""
_UNLIMITED_KB = 2**50
_MOST_LINES = 4000
_TOLD = 5


class KernelOomParser:
    """Adds one `system.oom_report` for each report of the kernel; its lines stay open to the signatures."""

    name = "kernel oom report"
    triggers: tuple[str, ...] = (r"\binvoked oom-killer: ",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the report that starts at `line`, until the kernel says whom it killed."""
        first = _INVOKED.match(table_line(document, line))
        if first is None:
            return line
        found: dict[str, Any] = {"invoked_by": first[1], "order": whole(first[2])}
        tasks: list[dict[str, Any]] = []
        end = line + 1
        for place, text in table_lines(document, line + 1, most=_MOST_LINES):
            if " invoked oom-killer: " in text:
                break
            if (limit := _LIMIT.match(text)) is not None:
                usage, most = whole(limit[1]) or 0, int(limit[2][:19])
                found |= {"usage_bytes": usage * 1024, "limit_bytes": most * 1024 if most < _UNLIMITED_KB else None}
            elif (task := _TASK.fullmatch(text)) is not None:
                tasks.append({"pid": whole(task[1]), "name": task[9][:60], "rss_bytes": (whole(task[5]) or 0) * _PAGE})
            elif (summary := _SUMMARY.match(text)) is not None:
                group = _CGROUP.search(text)
                found |= {"constraint": summary[1], "cgroup": None if group is None else group[1]}
            elif (killed := _KILLED.match(text)) is not None:
                found |= {
                    "pid": whole(killed[1]),
                    "killed": killed[2],
                    "anon_bytes": (whole(killed[3]) or 0) * 1024,
                    "shared_bytes": None if killed[4] is None else (whole(killed[4]) or 0) * 1024,
                }
                end = place + 1
                break
        if "pid" not in found:
            return line
        tasks.sort(key=lambda item: int(item["rss_bytes"]), reverse=True)
        found["tasks"] = tasks[:_TOLD]
        found["task_count"] = len(tasks) or None
        add_system(
            out, document, line, name="system.oom_report", text=found.get("killed"), attrs=found, severity="error"
        )
        return end

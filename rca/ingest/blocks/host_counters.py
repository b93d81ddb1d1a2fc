"""Counters and sizes of a host: `/proc/meminfo`, cgroup memory, `lscpu`, and error counters of network ports."""

from __future__ import annotations

from typing import Any

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import add_system, claim, table_line, table_lines
from rca.ingest.logs.document import Document
from rca.ingest.tables.cells import whole

_MEMINFO = re2.compile(r"([A-Za-z][\w()]*):\s+(\d{1,15})(?: kB)?")
_CGROUP = re2.compile(r"([a-z_]{2,40}) (\d{1,19})")
_CPU = re2.compile(r"\s*([A-Za-z][\w()/ -]*?):\s+(\S.*)")
_CGROUP_FILES = ({"max", "oom"}, {"under_oom"}, {"file", "shmem"}, {"rss"})
_CPU_FACTS = {
    "cpu(s)": "cpus",
    "thread(s) per core": "threads_per_core",
    "socket(s)": "sockets",
    "numa node(s)": "numa_nodes",
    "model name": "model",
}
_PORT_COUNTER = re2.compile(r"(\w+):\.+(\d{1,20})")
_NIC_COUNTER = re2.compile(r"\s+([\w.\[\]-]{2,80}): (\d{1,20})")
_PORT_ERRORS = (
    "SymbolErrorCounter",
    "LinkErrorRecoveryCounter",
    "LinkDownedCounter",
    "PortRcvErrors",
    "PortRcvRemotePhysicalErrors",
    "LocalLinkIntegrityErrors",
    "ExcessiveBufferOverrunErrors",
)
"""Error counters of an InfiniBand port (InfiniBand architecture, PortCounters)."""
_NIC_ERRORS = re2.compile(
    r"(?:rx|tx)_(?:crc|symbol|.*_symbol)_err\w*|rx_crc_errors\w*|link_down_events\w*|(?:rx|tx)_errors"
)


class MeminfoParser:
    """Adds `system.memory` for a copy of `/proc/meminfo`."""

    name = "meminfo"
    triggers: tuple[str, ...] = (r"^MemTotal:\s+\d+ kB",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the lines from `line` on."""
        found: dict[str, int] = {}
        end = line
        for place, text in table_lines(document, line, most=80):
            match = _MEMINFO.fullmatch(text.strip())
            if match is None:
                break
            found.setdefault(match[1], (whole(match[2]) or 0) * 1024)
            end = place + 1
        total, available = found.get("MemTotal", 0), found.get("MemAvailable")
        if not total or available is None:
            return line
        attrs = {
            "total_bytes": total,
            "available_bytes": available,
            "used_bytes": total - available,
            "swap_total_bytes": found.get("SwapTotal"),
            "swap_used_bytes": found.get("SwapTotal", 0) - found.get("SwapFree", 0),
            "shared_bytes": found.get("Shmem"),
        }
        add_system(out, document, line, name="system.memory", value=1 - available / total, attrs=attrs)
        return claim(document, line, end)


class CgroupParser:
    """Adds `system.cgroup` for `memory.events`, `memory.stat` or the older `memory.oom_control` of a container."""

    name = "cgroup memory"
    triggers: tuple[str, ...] = (r"^(?:low|oom_kill_disable|anon|cache) \d+$",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the `name number` lines from `line` on."""
        found: dict[str, int] = {}
        end = line
        for place, text in table_lines(document, line, most=80):
            match = _CGROUP.fullmatch(text.strip())
            if match is None:
                break
            found.setdefault(match[1], min(int(match[2]), 2**53))
            end = place + 1
        if not any(keys <= found.keys() for keys in _CGROUP_FILES):
            return line
        wanted = (
            "low",
            "high",
            "max",
            "oom",
            "oom_kill",
            "oom_group_kill",
            "under_oom",
            "anon",
            "file",
            "shmem",
            "rss",
        )
        attrs = {name: found[name] for name in wanted if name in found}
        kills = found.get("oom_kill")
        add_system(
            out, document, line, name="system.cgroup", value=None if kills is None else float(kills), attrs=attrs
        )
        return claim(document, line, end)


class CpuParser:
    """Adds `system.cpu` for `lscpu`."""

    name = "lscpu"
    triggers: tuple[str, ...] = (r"^Architecture:\s+(?:x86_64|aarch64|ppc64le)",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the lines from `line` on."""
        attrs: dict[str, Any] = {}
        end = line
        for place, text in table_lines(document, line, most=80):
            match = _CPU.fullmatch(text.rstrip())
            if match is None:
                break
            name = _CPU_FACTS.get(match[1].lower())
            if name is not None:
                count = whole(match[2])
                attrs.setdefault(name, match[2][:100] if count is None else count)
            end = place + 1
        if "cpus" not in attrs:
            return line
        add_system(out, document, line, name="system.cpu", text=attrs.get("model"), attrs=attrs)
        return claim(document, line, end)


class PortCountersParser:
    """Adds `system.port_errors` for `perfquery` and `ethtool -S`: the error counters that are not zero."""

    name = "port counters"
    triggers: tuple[str, ...] = (r"^# Port (?:extended )?counters: ", r"^NIC statistics:\s*$")

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the counters below `line`."""
        port = table_line(document, line).startswith("#")
        counters: dict[str, int] = {}
        end = line + 1
        seen = 0
        for place, text in table_lines(document, line + 1, most=5000):
            match = (_PORT_COUNTER.fullmatch(text.strip()) if port else _NIC_COUNTER.fullmatch(text.rstrip())) or None
            if match is None and not (port and ":." in text):
                break
            end = place + 1
            if match is None:
                continue
            seen += 1
            name = match[1]
            wanted = name in _PORT_ERRORS if port else _NIC_ERRORS.fullmatch(name) is not None
            if wanted and int(match[2]) > 0:
                counters[name] = min(int(match[2]), 2**53)
        if not seen:
            return line
        total = float(sum(counters.values()))
        title = table_line(document, line).strip("# ")[:120] if port else None
        attrs = {"counters": counters, "port": title}
        add_system(out, document, line, name="system.port_errors", value=total, attrs=attrs)
        return claim(document, line, end)

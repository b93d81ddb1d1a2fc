"""Which process on which node is which rank: what launchers, NCCL and the prefixes of lines say about it together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rca.events import Event, EventTable
from rca.facts.failure.roles import owner
from rca.facts.memo import once_per_table

_NCCL = re.compile(r"(?:^|[\s:])([A-Za-z][\w.-]{0,80}):(\d{1,8}):\d{1,8} \[\d{1,3}\] NCCL")
"""`node3:4021:4521 [5] NCCL INFO ...`: node, process, thread and device."""
_START = 200


@dataclass(frozen=True)
class Processes:
    """Ranks by their process, and by their node."""

    by_pid: Mapping[int, Mapping[str, frozenset[int]]]
    """Process id -> node (empty where nobody names it) -> ranks. Nodes give the same numbers out."""
    by_host: Mapping[str, frozenset[int]]

    def rank(self, pid: int, host: str | None) -> int | None:
        """Return the rank of a process; None where no rank, or more than one, has this number."""
        nodes = self.by_pid.get(pid, {})
        if host is not None and any(nodes):
            ranks = nodes.get(short_host(host), nodes.get("", frozenset()))
        else:
            ranks = frozenset().union(*nodes.values())
        return next(iter(ranks)) if len(ranks) == 1 else None

    def on_host(self, host: str) -> tuple[int, ...]:
        """Return the ranks of a node, sorted."""
        return tuple(sorted(self.by_host.get(short_host(host), ())))


@once_per_table
def processes(events: EventTable) -> Processes:
    """Return what is known of the processes of the ranks."""
    by_pid: dict[int, dict[str, set[int]]] = {}
    by_host: dict[str, set[int]] = {}
    for event in events.events:
        rank = owner(event)
        if rank is None:
            continue
        for pid, host in _named(event):
            if pid is not None:
                by_pid.setdefault(pid, {}).setdefault(host, set()).add(rank)
            if host:
                by_host.setdefault(host, set()).add(rank)
    return Processes(
        {pid: {host: frozenset(ranks) for host, ranks in nodes.items()} for pid, nodes in by_pid.items()},
        {host: frozenset(ranks) for host, ranks in by_host.items()},
    )


def _named(event: Event) -> Iterable[tuple[int | None, str]]:
    host = short_host(event.host or "")
    pid = event.attr("pid")
    if isinstance(pid, int) or host:
        yield pid if isinstance(pid, int) else None, host
    if " NCCL " in event.text[:_START]:
        match = _NCCL.search(event.text[:_START])
        if match is not None:
            yield int(match[2]), short_host(match[1])


def short_host(host: str) -> str:
    """Return the first label of a host name, in lower case: logs mix short and full names."""
    return host.split(".", 1)[0].lower()

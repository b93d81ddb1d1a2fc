"""What kubectl says about pods and nodes: `kubectl describe`, `get pods`, `get events`."""

from __future__ import annotations

from typing import Any

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import add_system, claim, table_line, table_lines
from rca.ingest.logs.document import Document
from rca.ingest.machine.containers import add_condition, add_container
from rca.ingest.tables.cells import size_in_bytes, whole

_PAIR = re2.compile(r"(\s*)([A-Za-z][\w ./()-]*?):(?:\s+(\S.*))?\s*")
_EVENT = re2.compile(r"\s*(Normal|Warning)\s+(\w+)\s+(\S+(?: \(x(\d+) over [^)]*\))?)\s+(\S+)\s+(\S.*)")
_LISTED = re2.compile(r"(\S+(?:\s+\S+)?)\s+(Normal|Warning)\s+(\w+)\s+(\S+)\s+(\S.*)")
_HEAD = re2.compile(r"[A-Za-z]+(?: (?:SEEN|GATES|NODE))?")
_ENDED = frozenset(
    {"OOMKilled", "Evicted", "Error", "ContainerCannotRun", "DeadlineExceeded", "NodeLost", "Preempting"}
)
_COUNT = re2.compile(r"\(x(\d+) over")
_LOOK_BACK = 80
_STATE_KEYS = ("reason", "exit code", "signal", "message")


class PodDescriptionParser:
    """Adds a `system.container` and, for bad exits, a `process.exit` for each container of a described pod."""

    name = "kubectl describe"
    triggers: tuple[str, ...] = (r"^(?:Init )?Containers:\s*$",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the containers listed below `line`; the pod's own name and node stand above it."""
        pod = _pod(document, line)
        containers: list[dict[str, Any]] = []
        section = ""
        end = line + 1
        for place, text in table_lines(document, line + 1, most=2000):
            match = _PAIR.fullmatch(text)
            indent = len(text) - len(text.lstrip())
            if text.strip() and indent == 0:
                break
            end = place + 1
            if match is None:
                continue
            key, value = match[2].lower(), (match[3] or "").strip()
            if indent == 2 and not value:
                containers.append({**pod, "container": match[2], "line": place})
                section = ""
            elif containers:
                section = key if indent <= 4 else section
                _take(containers[-1], section if indent > 4 else "", key, value)
        for container in containers:
            place = container.pop("line")
            add_container(out, container, line=place, offset=document.offset(place))
        return claim(document, line, end) if containers else line


class PodEventsParser:
    """Adds one `system.pod_event` a row of the events of pods and nodes, in all layouts of kubectl."""

    name = "kubectl events"
    triggers: tuple[str, ...] = (
        r"^\s*Type\s+Reason\s+Age\s+From\s+Message",
        r"^(?:NAMESPACE\s+)?LAST SEEN\s+TYPE\s+REASON\s+OBJECT\s+.*MESSAGE",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows below the header at `line`."""
        head = table_line(document, line)
        columns = _columns(head)
        listed = "LAST SEEN" in head
        end = line + 1
        for place, text in table_lines(document, line + 1):
            plain = text.rstrip()
            if not plain.replace("-", "").strip():
                end = place + 1
                continue
            found = _listed(plain, columns) if listed else _described(plain)
            if found is None:
                break
            attrs = {key: item[:500] if isinstance(item, str) else item for key, item in found.items()}
            severity = "warning" if found["type"] == "Warning" else "info"
            message = str(found["message"])
            add_system(out, document, place, name="system.pod_event", text=message, attrs=attrs, severity=severity)
            end = place + 1
        return claim(document, line, end) if end > line + 1 else line


def _columns(head: str) -> list[tuple[str, int]]:
    """Return the heads of a table of kubectl and where their columns start."""
    return [(match[0].lower(), match.start()) for match in _HEAD.finditer(head)]


def _row(text: str, columns: list[tuple[str, int]]) -> dict[str, str]:
    """Cut a row where its columns start; kubectl pads every cell to the width of its column."""
    ends = [start for _name, start in columns[1:]] + [len(text)]
    return {name: text[start:end].strip() for (name, start), end in zip(columns, ends, strict=True)}


def _listed(text: str, columns: list[tuple[str, int]]) -> dict[str, Any] | None:
    row = _row(text, columns)
    if row.get("type") not in {"Normal", "Warning"}:
        match = _LISTED.fullmatch(text)
        if match is None:
            return None
        row = {"type": match[2], "reason": match[3], "object": match[4], "message": match[5]}
    return {
        "type": row["type"],
        "reason": row.get("reason", ""),
        "object": row.get("object"),
        "namespace": row.get("namespace"),
        "count": whole(row.get("count", "")),
        "message": row.get("message", ""),
    }


def _described(text: str) -> dict[str, Any] | None:
    match = _EVENT.fullmatch(text)
    if match is None:
        return None
    count = _COUNT.search(text)
    return {
        "type": match[1],
        "reason": match[2],
        "count": whole(count[1]) if count else None,
        "message": match[6],
    }


class PodTableParser:
    """Adds one `system.container` a row of `kubectl get pods`."""

    name = "kubectl get pods"
    triggers: tuple[str, ...] = (r"^(?:NAMESPACE\s+)?NAME\s+READY\s+STATUS\s+RESTARTS\s+AGE",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows below the header at `line`."""
        columns = _columns(table_line(document, line))
        end = line + 1
        for place, text in table_lines(document, line + 1):
            row = _row(text.rstrip(), columns)
            if not row.get("name") or "/" not in row.get("ready", ""):
                break
            status = row.get("status", "")
            node = row.get("node")
            attrs = {
                "pod": row["name"],
                "state": status,
                "reason": status if status in _ENDED else None,
                "pod_reason": status if status in {"Evicted", "NodeLost", "Preempting"} else None,
                "restarts": whole(row.get("restarts", "").split(" ")[0]),
                "node": None if node in {None, "", "<none>"} else node,
            }
            add_system(out, document, place, name="system.container", text=status, attrs=attrs)
            end = place + 1
        return claim(document, line, end) if end > line + 1 else line


class NodeConditionsParser:
    """Adds one `system.condition` a row of the conditions that `kubectl describe node` lists."""

    name = "kubectl describe node"
    triggers: tuple[str, ...] = (r"^\s+Type\s+Status\s+LastHeartbeatTime\s+LastTransitionTime\s+Reason\s+Message",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows below the header at `line`; the name of the node stands above it."""
        columns = _columns(table_line(document, line))
        node = _pod(document, line).get("pod")
        end = line + 1
        for place, text in table_lines(document, line + 1, most=40):
            plain = text.rstrip()
            row = _row(plain, columns)
            if plain.replace("-", "").strip() and row.get("status") not in {"True", "False", "Unknown"}:
                break
            if row.get("status") in {"True", "False", "Unknown"}:
                add_condition(out, row, kind="Node", owner=node, line=place, offset=document.offset(place))
            end = place + 1
        return claim(document, line, end) if end > line + 1 else line


def _pod(document: Document, line: int) -> dict[str, Any]:
    """Return what the lines above the containers say of the pod."""
    found: dict[str, Any] = {}
    for place in range(max(1, line - _LOOK_BACK), line):
        match = _PAIR.fullmatch(table_line(document, place))
        if match is not None and not match[1] and match[3]:
            key = {"name": "pod", "node": "node", "status": "pod_status", "reason": "pod_reason"}.get(match[2].lower())
            if key is not None:
                found[key] = match[3].split("/", maxsplit=1)[0] if key == "node" else match[3]
    return found


def _take(container: dict[str, Any], section: str, key: str, value: str) -> None:
    """Keep one line of a container's description."""
    if section in {"state", "last state"} and key in _STATE_KEYS:
        name = ("last_" if section == "last state" else "") + key.replace(" ", "_")
        code = whole(value)
        container[name] = value[:500] if code is None else code
    elif section in {"limits", "requests"}:
        kind = section.removesuffix("s")
        if key in {"memory", "ephemeral-storage"}:
            container[f"{key.replace('-', '_')}_{kind}_bytes"] = size_in_bytes(value)
        elif kind == "limit":
            container[{"nvidia.com/gpu": "gpus", "cpu": "cpus"}.get(key, key)] = value
    elif section == "":
        names = {"image": "image", "state": "state", "last state": "last_state", "ready": "ready"}
        if key == "restart count":
            container["restarts"] = whole(value)
        elif key in names and value:
            container[names[key]] = value

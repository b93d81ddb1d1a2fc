"""What kubectl says about a pod: `kubectl describe pod` and `kubectl get events`."""

from __future__ import annotations

from typing import Any

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import add_system, claim, table_line, table_lines
from rca.ingest.cells import size_in_bytes, whole
from rca.ingest.containers import add_container
from rca.ingest.document import Document

_PAIR = re2.compile(r"(\s*)([A-Za-z][\w ./()-]*?):(?:\s+(\S.*))?\s*")
_EVENT = re2.compile(r"\s*(Normal|Warning)\s+(\w+)\s+(\S+(?: \(x(\d+) over [^)]*\))?)\s+(\S+)\s+(\S.*)")
_LISTED = re2.compile(r"(\S+)\s+(Normal|Warning)\s+(\w+)\s+(\S+)\s+(\S.*)")
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
    """Adds one `system.pod_event` a row of a pod's events."""

    name = "kubectl events"
    triggers: tuple[str, ...] = (
        r"^\s*Type\s+Reason\s+Age\s+From\s+Message",
        r"^LAST SEEN\s+TYPE\s+REASON\s+OBJECT\s+MESSAGE",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows below the header at `line`."""
        listed = table_line(document, line).startswith("LAST SEEN")
        end = line + 1
        for place, text in table_lines(document, line + 1):
            plain = text.rstrip()
            if not plain.replace("-", "").strip():
                end = place + 1
                continue
            match = _LISTED.fullmatch(plain) if listed else _EVENT.fullmatch(plain)
            if match is None:
                break
            kind, reason, message = (match[2], match[3], match[5]) if listed else (match[1], match[2], match[6])
            count = _COUNT.search(plain)
            attrs = {
                "type": kind,
                "reason": reason,
                "count": whole(count[1]) if count else None,
                "message": message[:500],
            }
            severity = "warning" if kind == "Warning" else "info"
            add_system(out, document, place, name="system.pod_event", text=message, attrs=attrs, severity=severity)
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

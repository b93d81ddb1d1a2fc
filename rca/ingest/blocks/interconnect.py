"""Ports of the interconnect as `ibstat` and `ibstatus` print them."""

from __future__ import annotations

from typing import Any

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import add_system, claim, table_lines
from rca.ingest.logs.document import Document
from rca.ingest.tables.cells import whole

_CARD = re2.compile(r"CA '([^']+)'")
_STATUS = re2.compile(r"Infiniband device '([^']+)' port (\d+) status:")
_PORT = re2.compile(r"\s+Port (\d+):\s*")
_PAIR = re2.compile(r"\s+([A-Za-z][\w -]*?):\s+(\S.*)")
_WANTED = {
    "state": "state",
    "physical state": "physical_state",
    "phys state": "physical_state",
    "rate": "rate",
    "link layer": "link_layer",
    "link_layer": "link_layer",
    "firmware version": "firmware",
    "ca type": "card",
}


class IbstatParser:
    """Adds one `system.ib_port` a port; its value is 1 where the port is active and 0 where not."""

    name = "ibstat"
    triggers: tuple[str, ...] = (r"^CA '[^']+'", r"^Infiniband device '[^']+' port \d+ status:")

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read one adapter with all its ports."""
        ports: list[dict[str, Any]] = []
        card: dict[str, Any] = {}
        end = line + 1
        for place, text in table_lines(document, line, most=200):
            if (head := _CARD.match(text)) is not None:
                if place > line:
                    break
                card["adapter"] = head[1]
            elif (status := _STATUS.match(text)) is not None:
                if place > line:
                    break
                ports.append({"adapter": status[1], "port": whole(status[2]), "line": place})
            elif (port := _PORT.fullmatch(text)) is not None:
                ports.append({**card, "port": whole(port[1]), "line": place})
            elif (pair := _PAIR.fullmatch(text)) is not None:
                if (name := _WANTED.get(pair[1].lower())) is not None:
                    (ports[-1] if ports else card)[name] = pair[2].split(": ")[-1].strip()
            elif text.strip():
                break
            end = place + 1
        for port in ports:
            place = port.pop("line")
            active = str(port.get("state", "")).lower() == "active"
            text = f"{port.get('adapter')} port {port['port']}: {port.get('state')}"
            severity = "info" if active else "warning"
            value = float(active)
            add_system(
                out, document, place, name="system.ib_port", text=text, value=value, attrs=port, severity=severity
            )
        return claim(document, line, end) if ports else line

"""Exceptions that a log names without their traceback."""

from __future__ import annotations

import builtins
import re

from rca.events import EventBuilder
from rca.ingest.logs.document import Document

_BUILTIN = frozenset(
    name
    for name, item in vars(builtins).items()
    if isinstance(item, type) and issubclass(item, Exception) and not issubclass(item, Warning)
) | {"KeyboardInterrupt", "OutOfMemoryError", "DistBackendError"}
_LINE = re.compile(
    r"(?:Error: |Uncaught exception: |Exception: |"
    r"E {1,4})?(?P<type>(?:[A-Za-z_]\w{0,80}\.){0,10}[A-Z]\w{0,80}(?:Error|Exception|Interrupt))"
    r"(?:: (?P<message>.*))?\s*$"
)


class BareExceptionParser:
    """One line that starts with the name of an exception: a builtin one, or one with its module."""

    name = "exception line"
    triggers: tuple[str, ...] = (r"\b[A-Z]\w*(?:Error|Exception|Interrupt)(?:: |\s*$)",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Add an exception without frames; return the line after it, or `line` where it is none."""
        prefix = document.prefix(line)
        found = _LINE.match(prefix.message[:8192])
        if found is None:
            return line
        name, message = found["type"], (found["message"] or "").strip()
        if "." not in name and name not in _BUILTIN:
            return line
        out.add(
            kind="exception",
            name=name,
            line=line,
            offset=document.offset(line),
            time=document.time(line),
            step=document.step(line),
            rank=prefix.rank,
            host=prefix.host,
            phase=document.phase(line),
            severity="error",
            text=message,
            attrs={
                "type": name,
                "message": message[:4096],
                "frames": [],
                "chain": [],
                "worker": None,
                "user_frame": None,
                "bare": True,
            },
        )
        return line + 1

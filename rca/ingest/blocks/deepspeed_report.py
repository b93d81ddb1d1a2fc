"""What `ds_report` says of an installation: versions, CUDA of the build, shared memory, operators that are missing."""

from __future__ import annotations

from typing import Any

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import add_system, claim, table_lines
from rca.ingest.logs.document import Document
from rca.ingest.tables.cells import size_in_bytes

_DOTTED = re2.compile(r"([A-Za-z][\w /().+-]*?)\s*\.{2,}\s*(\S.*)")
_OPERATOR = re2.compile(r"\[(YES|NO)\]\s*\.{2,}\s*\[(OKAY|NO|SKIPPED)\]")
_PACKAGES = {"torch version": "torch", "deepspeed info": "deepspeed"}
_ENVIRONMENT = {"torch cuda version": "cuda_build", "torch hip version": "rocm_build", "nvcc version": "cuda_toolkit"}
_NOTHING = frozenset({"none", "[fail]", "n/a", "unknown"})


class DeepSpeedReportParser:
    """Adds package, `system.environment` and `system.filesystem` events for the report of `ds_report`."""

    name = "ds_report"
    triggers: tuple[str, ...] = (
        r"^DeepSpeed C\+\+/CUDA extension op report",
        r"^DeepSpeed general environment info:",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the report whose title stands at `line`; rules and notes between its lines are passed over."""
        operators: dict[str, dict[str, Any]] = {}
        before, end = len(out), line + 1
        for place, text in table_lines(document, line + 1, most=200):
            plain = text.strip()
            match = _DOTTED.fullmatch(plain)
            if match is None:
                if plain and not plain.startswith(("-", "NOTE", "runtime", "meet", "JIT", "DeepSpeed", "op name", "[")):
                    break
                continue
            end = place + 1
            key, value = match[1].strip().lower(), match[2].strip()
            if (operator := _OPERATOR.fullmatch(value)) is not None:
                operators[match[1].strip()] = {"installed": operator[1] == "YES", "compatible": operator[2] == "OKAY"}
            elif value.lower() not in _NOTHING:
                _take(out, document, place, key, value)
        if operators:
            add_system(out, document, line, name="system.operators", attrs={"operators": operators})
        return claim(document, line, end) if len(out) > before else line


def _take(out: EventBuilder, document: Document, line: int, key: str, value: str) -> None:
    if (package := _PACKAGES.get(key)) is not None:
        version = value.split(",", maxsplit=1)[0].strip()
        attrs = {"origin": "banner", "installed": True}
        add_system(out, document, line, name=package, kind="package", text=version, attrs=attrs)
    elif (name := _ENVIRONMENT.get(key)) is not None:
        add_system(out, document, line, name="system.environment", text=value, attrs={name: value[:100]})
    elif key.startswith("shared memory (/dev/shm)") and (size := size_in_bytes(value)) is not None:
        shared = {"filesystem": "shm", "mount": "/dev/shm", "size_bytes": size}
        add_system(out, document, line, name="system.filesystem", text="/dev/shm", attrs=shared)

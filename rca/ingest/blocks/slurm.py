"""What Slurm says about jobs: `sacct` tables, `scontrol show job`, `seff`."""

from __future__ import annotations

from typing import Any

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import add_system, claim, table_line, table_lines
from rca.ingest.cells import size_in_bytes
from rca.ingest.document import Document
from rca.ingest.exit_codes import signal_of
from rca.ingest.quantities import seconds

_RULE = re2.compile(r"-+(?:\s+-+)+\s*")
_PAIR = re2.compile(r"(\w[\w/:]*)=(\S*)")
_SEFF = re2.compile(r"([A-Z][\w /()-]*?):\s+(\S.*)")
_SEFF_MEMORY = re2.compile(r"(\d+(?:\.\d+)?)% of ([\d.]+ [KMGT]?B)")
_EXIT = re2.compile(r"(\d{1,9}):(\d{1,9})")
_BAD = ("FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_ME", "BOOT_FAIL", "DEADLINE")
_TIMES = {"elapsed": "elapsed_s", "timelimit": "time_limit_s", "runtime": "elapsed_s"}
_SIZES = {"maxrss": "max_rss_bytes", "reqmem": "requested_memory_bytes", "averss": "average_rss_bytes"}
_NAMES = {
    "jobid": "job_id",
    "jobname": "job_name",
    "state": "state",
    "jobstate": "state",
    "reason": "reason",
    "partition": "partition",
    "nodelist": "nodes",
    "allocnodes": "node_count",
    "numnodes": "node_count",
    "requeue": "requeue",
    "restarts": "restarts",
    "exitcode": "exit_code",
    "derivedexitcode": "derived_exit_code",
}


class SacctParser:
    """Adds one `system.slurm_job` a row of a `sacct` table, aligned or with `|` between the columns."""

    name = "sacct"
    triggers: tuple[str, ...] = (r"^\s*JobID(?:Raw)?[\s|].*\b(?:State|Elapsed|ExitCode|MaxRSS)\b",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows below the header at `line`."""
        header = table_line(document, line)
        piped = "|" in header
        names = [name.strip().lower() for name in (header.split("|") if piped else header.split())]
        columns: list[tuple[int, int]] = []
        end = line + 1
        found = 0
        for place, text in table_lines(document, line + 1):
            if not piped and _RULE.fullmatch(text.strip() + " "):
                columns = _columns(text)
            elif not text.strip():
                break
            else:
                cells = text.split("|") if piped else _cells(text, columns, len(names))
                row = {name: cell.strip() for name, cell in zip(names, cells, strict=False)}
                unstated = "state" in names and not row.get("state")
                if unstated or not row.get("jobid", row.get("jobidraw", ""))[:1].isdigit():
                    break
                _add_job(out, document, place, row)
                found += 1
            end = place + 1
        return claim(document, line, end) if found else line


class ScontrolParser:
    """Adds one `system.slurm_job` for the block of `scontrol show job`."""

    name = "scontrol"
    triggers: tuple[str, ...] = (r"^\s*JobId=\d+ ",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the `Key=value` lines from `line` on."""
        row: dict[str, str] = {}
        end = line
        for place, text in table_lines(document, line, most=80):
            pairs = _PAIR.findall(text)
            if not pairs or (place > line and text.lstrip().startswith("JobId=")):
                break
            row |= {key.lower(): value for key, value in pairs}
            end = place + 1
        if "jobstate" not in row:
            return line
        _add_job(out, document, line, row)
        return claim(document, line, end)


class SeffParser:
    """Adds one `system.slurm_job` for the report of `seff`."""

    name = "seff"
    triggers: tuple[str, ...] = (r"^Job ID: \d+\s*$",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the report that starts at `line`."""
        row: dict[str, str] = {}
        end = line
        for place, text in table_lines(document, line, most=30):
            match = _SEFF.fullmatch(text.strip())
            if match is None:
                break
            row[match[1].lower()] = match[2]
            end = place + 1
        if "state" not in row:
            return line
        efficiency = _SEFF_MEMORY.search(row.get("memory efficiency", ""))
        attrs: dict[str, Any] = {
            "job_id": row.get("job id"),
            "state": row["state"].split(" (", maxsplit=1)[0],
            "elapsed_s": seconds(row.get("job wall-clock time", "")),
            "max_rss_bytes": size_in_bytes(row.get("memory utilized", "")),
        }
        if efficiency is not None:
            attrs |= {
                "requested_memory_bytes": size_in_bytes(efficiency[2]),
                "memory_share": float(efficiency[1]) / 100,
            }
        _add(out, document, line, attrs)
        return claim(document, line, end)


def _columns(rule: str) -> list[tuple[int, int]]:
    """Return the (start, end) of every run of dashes."""
    spans: list[tuple[int, int]] = []
    start = None
    for index, char in enumerate(f"{rule} "):
        if char == "-" and start is None:
            start = index
        elif char != "-" and start is not None:
            spans.append((start, index))
            start = None
    return spans


def _cells(text: str, columns: list[tuple[int, int]], count: int) -> list[str]:
    return [text[start:end] for start, end in columns] if len(columns) == count else text.split()


def _add_job(out: EventBuilder, document: Document, line: int, row: dict[str, str]) -> None:
    attrs: dict[str, Any] = {}
    for key, value in row.items():
        if not value or value in {"Unknown", "(null)", "None"}:
            continue
        if key in _TIMES:
            attrs[_TIMES[key]] = seconds(value) if value not in {"UNLIMITED", "Partition_Limit"} else None
        elif key in _SIZES:
            attrs[_SIZES[key]] = size_in_bytes(value.rstrip("cn"))
        elif key in _NAMES:
            attrs[_NAMES[key]] = value
    if (match := _EXIT.fullmatch(row.get("exitcode", ""))) is not None:
        attrs["exit_code"] = int(match[1])
        attrs["signal"] = signal_of(-int(match[2])) if match[2] != "0" else signal_of(int(match[1]))
    _add(out, document, line, attrs)


def _add(out: EventBuilder, document: Document, line: int, attrs: dict[str, Any]) -> None:
    state = str(attrs.get("state", ""))
    severity = "error" if state.startswith(_BAD) else "info"
    add_system(out, document, line, name="system.slurm_job", text=state, attrs=attrs, severity=severity)

"""What Slurm and PBS say about jobs and nodes: `sacct`, `scontrol show`, `seff`, `sinfo`, `qstat -f`."""

from __future__ import annotations

import re
from typing import Any

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import add_system, claim, table_line, table_lines
from rca.ingest.logs.document import Document
from rca.ingest.machine.exit_codes import signal_of
from rca.ingest.machine.slurm_jobs import job_attrs, severity_of
from rca.ingest.quantities import seconds
from rca.ingest.tables.cells import number, size_in_bytes

_RULE = re2.compile(r"-+(?:\s+-+)+\s*")
_PAIR = re2.compile(r"(\w[\w/:]*)=(\S*)")
_QSTAT = re2.compile(r"    ([A-Za-z][\w.]*) = (\S.*)")
_SEFF = re2.compile(r"([A-Z][\w /()-]*?):\s+(\S.*)")
_SEFF_MEMORY = re2.compile(r"(\d+(?:\.\d+)?)% of ([\d.]+ [KMGT]?B)")


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
    """Return the words below each run of dashes; a table that was shifted when it was copied keeps its words whole."""
    if len(columns) != count:
        return text.split()
    cells: list[list[str]] = [[] for _ in columns]
    for word in re.finditer(r"\S+", text):
        shared = [min(word.end(), end) - max(word.start(), start) for start, end in columns]
        cells[shared.index(max(shared))].append(word[0])
    return [" ".join(words) for words in cells]


def _add_job(out: EventBuilder, document: Document, line: int, row: dict[str, str]) -> None:
    _add(out, document, line, job_attrs(row))


def _add(out: EventBuilder, document: Document, line: int, attrs: dict[str, Any]) -> None:
    state = str(attrs.get("state", ""))
    severity = severity_of(attrs)
    add_system(out, document, line, name="system.slurm_job", text=state, attrs=attrs, severity=severity)


class NodeRecordParser:
    """Adds one `system.slurm_node` for each node of `scontrol show node`."""

    name = "scontrol node"
    triggers: tuple[str, ...] = (r"^NodeName=\S+ (?:Arch|CoresPerSocket|State)=",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the `Key=value` lines of one node; the reason runs to the end of its line."""
        row: dict[str, str] = {}
        reason = None
        end = line
        for place, text in table_lines(document, line, most=80):
            pairs = _PAIR.findall(text)
            if not pairs or (place > line and text.startswith("NodeName=")):
                break
            if text.strip().startswith("Reason="):
                reason = text.strip().removeprefix("Reason=")[:300]
            row |= {key.lower(): value for key, value in pairs if key.lower() not in row}
            end = place + 1
        if "state" not in row:
            return line
        attrs = {"nodes": row["nodename"], "state": row["state"], "reason": reason}
        add_system(out, document, line, name="system.slurm_node", text=row["state"], attrs=attrs)
        return claim(document, line, end)


class NodeListParser:
    """Adds one `system.slurm_node` a row of `sinfo` or `sinfo -R`."""

    name = "sinfo"
    triggers: tuple[str, ...] = (
        r"^PARTITION\s+AVAIL\s+TIMELIMIT\s+NODES\s+STATE\s+NODELIST",
        r"^REASON\s+USER\s+TIMESTAMP\s+NODELIST",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows below the header at `line`."""
        reasons = table_line(document, line).startswith("REASON")
        end = line + 1
        for place, text in table_lines(document, line + 1):
            words = text.split()
            if len(words) < (4 if reasons else 6):
                break
            attrs = {"nodes": words[-1], "state": "reason given" if reasons else words[-2]}
            if reasons:
                attrs["reason"] = " ".join(words[:-3])
            add_system(out, document, place, name="system.slurm_node", text=attrs["state"], attrs=attrs)
            end = place + 1
        return claim(document, line, end) if end > line + 1 else line


class QstatParser:
    """Adds one `system.batch_job` for each job of `qstat -f`."""

    name = "qstat"
    triggers: tuple[str, ...] = (r"^Job Id: \S+",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the indented `key = value` lines below the name of the job."""
        row: dict[str, str] = {}
        end = line + 1
        for place, text in table_lines(document, line + 1, most=200):
            match = _QSTAT.fullmatch(text.rstrip())
            if match is None and not text.startswith(("\t", "        ")):
                break
            if match is not None:
                row[match[1].lower()] = match[2]
            end = place + 1
        if "job_state" not in row:
            return line
        code = number(row.get("exit_status", ""))
        attrs: dict[str, Any] = {
            "job_id": table_line(document, line).split(":", 1)[1].strip(),
            "job_name": row.get("job_name"),
            "state": row["job_state"],
            "reason": row.get("comment"),
            "nodes": row.get("exec_host"),
            "elapsed_s": seconds(row.get("resources_used.walltime", "")),
            "time_limit_s": seconds(row.get("resource_list.walltime", "")),
            "max_rss_bytes": size_in_bytes(row.get("resources_used.mem", "")),
            "requested_memory_bytes": size_in_bytes(row.get("resource_list.mem", "")),
        }
        if code is not None and abs(code) < 1000:
            # PBS writes the end by a signal as 256 plus its number, older servers as 128 plus it.
            attrs["exit_code"] = int(code)
            attrs["signal"] = signal_of(int(code) - 128 if code > 256 else int(code))
        severity = "info" if code in {None, 0.0} else "error"
        add_system(out, document, line, name="system.batch_job", text=row["job_state"], attrs=attrs, severity=severity)
        return claim(document, line, end)

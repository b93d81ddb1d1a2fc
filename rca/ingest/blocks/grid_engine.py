"""What Grid Engine's accounting says of a job: `qacct -j`."""

from __future__ import annotations

from typing import Any

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import add_system, claim, table_lines
from rca.ingest.logs.document import Document
from rca.ingest.machine.exit_codes import add_exit, signal_of
from rca.ingest.quantities import seconds
from rca.ingest.tables.cells import size_in_bytes, whole

_LINE = re2.compile(r"([a-z_]{2,24})\s+(\S.*?)\s*")
_LIMIT = re2.compile(r"\b(h_vmem|s_vmem|h_rt)=([\w.:]+)")
_NEEDED = {"jobnumber", "exit_status"}
_MOST = 80
_DEFAULT_SLOTS = 1


class QacctParser:
    """Adds one `system.batch_job` a job, and its `process.exit` where it ended badly."""

    name = "qacct"
    triggers: tuple[str, ...] = (r"^qname\s+\S", r"^jobnumber\s+\d")

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the `key  value` lines of one job."""
        row: dict[str, str] = {}
        end = line
        for place, text in table_lines(document, line, most=_MOST):
            pair = _LINE.fullmatch(text)
            if pair is None or (place > line and pair[1] == "qname"):
                break
            row.setdefault(pair[1], pair[2])
            end = place + 1
        if not row.keys() >= _NEEDED:
            return line
        limits = dict(_LIMIT.findall(" ".join(row.get(key, "") for key in ("category", "hard_resources"))))
        slots = whole(row.get("slots", "")) or _DEFAULT_SLOTS
        a_slot = size_in_bytes(str(limits.get("h_vmem") or limits.get("s_vmem") or ""))
        code = whole(row["exit_status"].split()[0])
        attrs: dict[str, Any] = {
            "job_id": row["jobnumber"],
            "job_name": row.get("jobname"),
            "state": f"failed {row['failed']}" if row.get("failed", "0").split()[0] != "0" else "done",
            "nodes": row.get("hostname"),
            "elapsed_s": seconds(row.get("ru_wallclock", "")),
            "time_limit_s": seconds(limits.get("h_rt", "")),
            "max_rss_bytes": size_in_bytes(row.get("maxvmem", "")),
            # Grid Engine counts memory limits for each slot.
            "requested_memory_bytes": None if a_slot is None else slots * a_slot,
            "exit_code": code,
            "signal": None if code is None else signal_of(code),
        }
        severity = "info" if code in {None, 0} else "error"
        add_system(out, document, line, name="system.batch_job", text=attrs["state"], attrs=attrs, severity=severity)
        if code:
            text = f"{row['exit_status']} of job {row['jobnumber']}"
            add_exit(out, code, line=line, offset=document.offset(line), text=text)
        return claim(document, line, end)

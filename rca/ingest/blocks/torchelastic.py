"""The summary in which torchrun lists the workers that failed."""

from __future__ import annotations

import re
from typing import Any

from rca.events import EventBuilder
from rca.ingest.logs.document import Document
from rca.ingest.logs.timestamps import first_full_date
from rca.ingest.machine.exit_codes import signal_of, signed

_EXIT = re.compile(r"\s{0,8}exitcode\s{0,4}: (?P<code>-?\d{1,5})(?: \(pid: (?P<pid>\d{1,8})\))?")
_ROW = re.compile(r"\s{0,8}(?P<key>time|host|rank|error_file|traceback)\s{0,8}: (?P<value>.{0,400})$")
_RANK = re.compile(r"(?P<rank>\d{1,6})(?: \(local_rank: (?P<local>\d{1,5})\))?")
_ABOVE, _BELOW = 6, 3


class ElasticSummaryParser:
    """One worker of the summary: rank, host, exit code, process, time, and whether it is named as the root cause."""

    name = "torchelastic summary"
    triggers: tuple[str, ...] = (r"^\s*exitcode\s*: -?\d+",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Add the exit of the worker whose `exitcode` stands at `line`."""
        exit_ = _EXIT.match(document.prefix(line).message)
        if exit_ is None:
            return line
        rows, root = _around(document, line)
        ranks = _RANK.match(rows.get("rank", ""))
        code = int(exit_["code"])
        attrs: dict[str, Any] = {
            "exit_code": code,
            "signal": signal_of(code),
            "pid": int(exit_["pid"]) if exit_["pid"] else None,
            "local_rank": int(ranks["local"]) if ranks and ranks["local"] else None,
            "root_cause": root,
            "from": "torchelastic",
        }
        if not rows.get("error_file", "<N/A>").startswith("<N/A>"):
            attrs["error_file"] = rows["error_file"]
        out.add(
            kind="process",
            name="process.exit",
            line=line,
            offset=document.offset(line),
            time=first_full_date(rows.get("time", "").encode()) or document.time(line),
            step=document.step(line),
            rank=int(ranks["rank"]) if ranks else None,
            host=rows.get("host"),
            value=float(signed(code)),
            severity="info" if code == 0 else "error",
            text=document.raw(line),
            attrs={key: value for key, value in attrs.items() if value is not None},
        )
        return line + 1


def _around(document: Document, line: int) -> tuple[dict[str, str], bool]:
    """The rows of the same worker above and below, and whether the heading above them says root cause."""
    rows: dict[str, str] = {}
    root = False
    for number in range(line - 1, max(0, line - _ABOVE), -1):
        message = document.prefix(number).message
        row = _ROW.match(message)
        if row:
            rows.setdefault(row["key"], row["value"].strip())
            continue
        root = "Root Cause" in message or (
            message.strip().startswith("[") and number > 1 and "Root Cause" in document.prefix(number - 1).message
        )
        break
    for number in range(line + 1, min(len(document), line + _BELOW) + 1):
        row = _ROW.match(document.prefix(number).message)
        if row is None:
            break
        rows.setdefault(row["key"], row["value"].strip())
    return rows, root

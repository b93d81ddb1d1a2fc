"""One job or job step of a scheduler as the event that the facts read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import re2

from rca.ingest.machine.exit_codes import signal_of
from rca.ingest.quantities import seconds
from rca.ingest.tables.cells import size_in_bytes

_EXIT = re2.compile(r"(\d{1,9}):(\d{1,9})")
BAD_STATES = ("FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_ME", "BOOT_FAIL", "DEADLINE")
_CANCELLED = re2.compile(r"CANCELLED by (\d{1,10})")
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


def job_attrs(row: Mapping[str, str]) -> dict[str, Any]:
    """Return what a row says of a job; `row` has the names of `sacct` or `scontrol` in lower case."""
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
    if (owner := _CANCELLED.match(str(attrs.get("state", "")))) is not None:
        attrs["cancelled_by"] = owner[1]
    return {key: value for key, value in attrs.items() if value is not None}


def severity_of(attrs: Mapping[str, Any]) -> str:
    """Return how bad the state of a job is."""
    return "error" if str(attrs.get("state", "")).startswith(BAD_STATES) else "info"

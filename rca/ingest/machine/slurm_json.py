"""Slurm's answers as JSON: `sacct --json`, `squeue --json`, `scontrol show job --json`."""

from __future__ import annotations

from typing import Any

from rca.events import EventBuilder
from rca.ingest.machine.exit_codes import signal_of
from rca.ingest.machine.slurm_jobs import severity_of

MAX_JOBS = 2000


def is_slurm_answer(document: Any) -> bool:
    """Say whether a document lists jobs with a state and an exit code, as Slurm's data parsers write them."""
    jobs = document.get("jobs") if isinstance(document, dict) else None
    return (
        isinstance(jobs, list)
        and bool(jobs)
        and all(
            isinstance(job, dict) and "job_id" in job and ({"state", "job_state"} & job.keys()) for job in jobs[:50]
        )
    )


def add_slurm_answer(out: EventBuilder, document: Any) -> None:
    """Add one `system.slurm_job` for each job and step."""
    for job in document["jobs"][:MAX_JOBS]:
        if not isinstance(job, dict):
            continue
        _add(out, _job(job))
        steps = job.get("steps")
        for step in steps[:200] if isinstance(steps, list) else []:
            if isinstance(step, dict):
                _add(out, _step(step))


def _add(out: EventBuilder, attrs: dict[str, Any]) -> None:
    known = {key: value for key, value in attrs.items() if value not in {None, ""}}
    out.add(
        kind="system",
        name="system.slurm_job",
        text=known.get("state"),
        severity=severity_of(known),
        attrs=known,
    )


def _job(job: dict[str, Any]) -> dict[str, Any]:
    time = _dict(job.get("time"))
    limit = _number(time.get("limit", job.get("time_limit")))
    code, signal = _exit(job.get("exit_code"))
    return {
        "job_id": str(job.get("job_id")),
        "job_name": _text(job.get("name")),
        "partition": _text(job.get("partition")),
        "nodes": _text(job.get("nodes")),
        "state": _state(job.get("state", job.get("job_state"))),
        "reason": _text(_dict(job.get("state")).get("reason", job.get("state_reason"))),
        "elapsed_s": _number(time.get("elapsed")),
        "time_limit_s": None if limit is None else limit * 60,
        "exit_code": code,
        "signal": signal,
        "requested_memory_bytes": _memory(_dict(job.get("tres")).get("requested"), 1024**2),
    }


def _step(step: dict[str, Any]) -> dict[str, Any]:
    about = _dict(step.get("step"))
    identity = about.get("id")
    if isinstance(identity, dict):
        identity = f"{identity.get('job_id')}.{identity.get('step_id')}"
    code, signal = _exit(step.get("exit_code"))
    return {
        "job_id": None if identity is None else str(identity),
        "job_name": _text(about.get("name")),
        "state": _state(step.get("state")),
        "elapsed_s": _number(_dict(step.get("time")).get("elapsed")),
        "exit_code": code,
        "signal": signal,
        "max_rss_bytes": _memory(_dict(_dict(step.get("tres")).get("requested")).get("max"), 1),
    }


def _state(value: Any) -> str | None:
    """Return the state, which newer versions nest and write as a list of flags."""
    if isinstance(value, dict):
        value = value.get("current")
    if isinstance(value, list):
        value = next((item for item in value if isinstance(item, str)), None)
    return value if isinstance(value, str) else None


def _number(value: Any) -> float | None:
    """Return a number that may be written as {set, infinite, number}."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) and not value.get("infinite") else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 1e18:
        return None
    return float(value)


def _exit(value: Any) -> tuple[int | None, str | None]:
    found = _dict(value)
    code = _number(found.get("return_code", value))
    signal = _dict(found.get("signal"))
    number = _number(signal.get("id", signal.get("signal_id")))
    named = signal_of(-int(number)) if number else None
    return None if code is None else int(code), named


def _memory(listed: Any, unit: int) -> int | None:
    """Return the memory of a list of trackable resources, the largest where it is told a node."""
    sizes = [
        _number(item.get("count"))
        for item in (listed if isinstance(listed, list) else [])
        if isinstance(item, dict) and item.get("type") == "mem"
    ]
    known = [size for size in sizes if size]
    return int(max(known) * unit) if known else None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value not in {"", "None"} else None

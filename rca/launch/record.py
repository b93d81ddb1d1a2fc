"""How a watched command ended, as a file that the analysis reads."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from rca.launch.child import Ended
from rca.launch.tasks import Task
from rca.redact.messages import command_without_secrets
from rca.redact.redactor import Redactor

NAME = "rca-run.json"
"""Read by rca.ingest.machine.launch_records."""


def write(folder: Path, command: Sequence[str], ended: Ended, task: Task) -> None:
    """Write the record of a command."""
    told = Redactor("default")
    words = command_without_secrets(command)
    document = {
        "rca_run": 1,
        "command": [told.text(word) for word in words],
        "exit_code": ended.code,
        "started": _iso(ended.started),
        "ended": _iso(ended.started + ended.seconds),
        "seconds": round(ended.seconds, 3),
        "peak_rss_bytes": ended.peak_rss_bytes,
        "rank": task.rank,
        "world_size": task.size,
        "host": platform.node(),
        "python": platform.python_version(),
    }
    (folder / NAME).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def ended_since(since: float, folder: Path) -> int:
    """Return how many tasks of a job told their end after that time (seconds since the epoch)."""
    return sum(_written(file) >= since for file in folder.glob(f"rank_*/{NAME}"))


def _written(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:  # gone since it was listed
        return 0.0


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=timezone.utc).isoformat(timespec="milliseconds")

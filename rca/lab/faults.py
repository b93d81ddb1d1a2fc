"""The faults that the lab can make, read from `faults.yaml`."""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict


class Fault(BaseModel):
    """One way to spoil a tiny job, and the truth about it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    cause: str
    also_ok: tuple[str, ...] = ()
    title: str
    symptom: str
    why: str
    fix: str
    phase: str = "train"
    job: str
    """Program in `rca/lab/jobs`."""
    arguments: tuple[str, ...] = ()
    processes: int = 1
    """More than one starts the job with torchrun."""
    sample: bool = True
    """Whether a run of it is kept in `sample_logs/`."""


def _read() -> dict[str, Fault]:
    rows = yaml.safe_load(Path(__file__).with_name("faults.yaml").read_text(encoding="utf-8"))
    return {row["name"]: Fault(**row) for row in rows}


FAULTS = _read()

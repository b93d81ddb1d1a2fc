"""The faults that the lab can make, read from `catalogue/*.yaml`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field

from rca.errors import UsageError
from rca.rules.yaml_files import did_you_mean

ARCHITECTURES = ("llama", "gpt2")
"""The second one is kept for the evaluation: no outcome is counted on it."""
_ARCHITECTURE_JOBS = frozenset({"language_model", "text_generation"})

Arguments = tuple[str, ...]


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
    arguments: Arguments = ()
    severities: Annotated[dict[str, Arguments], Field(min_length=1)] = {"usual": ()}
    """Name -> further arguments; the first is the usual one. Outcomes of experiments are counted on these."""
    unseen: Annotated[dict[str, Arguments], Field(min_length=1)]
    """Other severities and sizes, on which nothing is counted: they are for the evaluation."""
    architectures: tuple[str, ...] = ARCHITECTURES
    """Of a transformer: the classes that can have the fault."""
    processes: int = 1
    """More than one starts the job with torchrun."""
    sample: bool = False
    """Whether a run of it is kept in `sample_logs/`."""

    @property
    def has_architectures(self) -> bool:
        """Whether the job has a transformer that could be another one."""
        return self.job in _ARCHITECTURE_JOBS


@dataclass(frozen=True)
class Variant:
    """One run of a fault: how strong, on which architecture, with which seed."""

    fault: Fault
    severity: str
    architecture: str
    seed: int

    @property
    def name(self) -> str:
        """Name of its folder."""
        parts = [self.fault.name, self.severity, *([self.architecture] if self.fault.has_architectures else [])]
        return f"{'-'.join(re.sub(r'[^a-z0-9_.]+', '_', part) for part in parts)}-{self.seed}"

    @property
    def arguments(self) -> Arguments:
        """Command line of the job."""
        fault = self.fault
        other = ("--architecture", self.architecture) if self.architecture != ARCHITECTURES[0] else ()
        chosen = {**fault.severities, **fault.unseen}[self.severity]
        return (*fault.arguments, *chosen, *(other if fault.has_architectures else ()), f"--seed={self.seed}")


def variant(fault: str, *, severity: str = "", architecture: str = "", seed: int = 0) -> Variant:
    """Return one run of a fault; without a severity the usual one.

    Raises UsageError for a fault, severity or architecture that does not exist.
    """
    found = fault_named(fault)
    known = {**found.severities, **found.unseen}
    chosen = severity or next(iter(found.severities))
    if chosen not in known:
        raise UsageError(f"{fault} has no severity {chosen!r}; it has {', '.join(known)}")
    kind = architecture or found.architectures[0]
    if kind not in found.architectures:
        raise UsageError(f"{fault} has no architecture {kind!r}; it has {', '.join(found.architectures)}")
    if architecture and not found.has_architectures:
        raise UsageError(f"the job of {fault} has no transformer, so it takes no --architecture")
    return Variant(found, chosen, kind, seed)


def fault_named(name: str) -> Fault:
    """Return a fault. Raises UsageError when there is none."""
    if name not in FAULTS:
        raise UsageError(f"{name!r} is not a fault; `rca lab list` shows them{did_you_mean(name, FAULTS)}")
    return FAULTS[name]


def _read() -> dict[str, Fault]:
    files = sorted((Path(__file__).parent / "catalogue").glob("*.yaml"))
    rows = [row for file in files for row in yaml.safe_load(file.read_text(encoding="utf-8"))]
    return {row["name"]: Fault(**row) for row in rows}


FAULTS = _read()

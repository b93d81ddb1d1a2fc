"""Which task of a job this process is, by the variables of the launchers, and where its output belongs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
_SIZES = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE")
_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "RAY_JOB_ID")
_TORCHRUN = ("torchrun", "torch.distributed.run", "torch.distributed.launch")
_ALL_STREAMS = "3"

FOLDER = "rca-run"
"""Folder below the run directory for what is kept of a watched run."""


@dataclass(frozen=True)
class Task:
    """One of the processes that a launcher started."""

    rank: int | None
    """Global rank; None where this is the only one."""
    size: int
    job: str | None
    """Id of the job, the same for all its tasks."""


def this_task(environ: Mapping[str, str]) -> Task:
    """Return which task this is."""
    rank, size = _number(environ, _RANKS), _number(environ, _SIZES)
    job = next((environ[name] for name in _JOBS if environ.get(name)), None)
    several = rank is not None and size is not None and size > 1
    return Task(rank if several else None, size if several and size else 1, job)


def files_of(task: Task, folder: Path) -> Path:
    """Return the folder for what this task leaves."""
    return folder if task.rank is None else folder / f"rank_{task.rank}"


def claimed(folder: Path, *, since: float) -> bool:
    """Say whether this task is the first of its job to ask, and so the one that analyses.

    What a job before `since` (seconds since the epoch) left in the folder does not count. Raises OSError.
    """
    file = folder / "analysed-by"
    try:
        if file.stat().st_mtime < since:
            file.unlink(missing_ok=True)
    except FileNotFoundError:
        pass
    try:
        file.open("x").close()
    except FileExistsError:
        return False
    return True


def per_rank(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which torchrun also keeps the output of every worker it starts, if it is started here.

    Options on its command line win over them (torch.distributed.argparse_util).
    """
    words = {PurePath(word).name for word in command[:6]}
    if words.isdisjoint(_TORCHRUN) or any(name in environ for name in ("PET_LOG_DIR", "PET_TEE", "PET_REDIRECTS")):
        return {}
    return {"PET_LOG_DIR": str(folder / "workers"), "PET_TEE": _ALL_STREAMS}


def _number(environ: Mapping[str, str], names: Sequence[str]) -> int | None:
    return next((int(value) for name in names if (value := environ.get(name, "")).isdigit()), None)

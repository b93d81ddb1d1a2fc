"""Measurements over many runs: work shared among processes, results written as they come, finished ones skipped.

A file of results holds one JSON document a line, each with the `run` that it belongs to. A measurement that was
interrupted goes on where it stopped when it is started again with the same file.
"""

from __future__ import annotations

import json
import multiprocessing
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from rca.errors import UsageError
from rca.lab.faults import FAULTS, Fault, Variant, fault_named
from rca.lab.make import make
from rca.lab.warm import WarmPython

Row = dict[str, Any]
_warm: list[WarmPython] = []


def variants(
    names: Sequence[str], seeds: Sequence[int], *, unseen: bool, architectures: Sequence[str]
) -> tuple[Variant, ...]:
    """Return the runs of the named faults (all without names): the severities on which outcomes are counted, or the
    `unseen` ones. Raises UsageError for an unknown fault.
    """
    faults = [fault_named(name) for name in names] if names else list(FAULTS.values())
    return tuple(
        Variant(fault, severity, architecture, seed)
        for seed in seeds
        for fault in faults
        for severity in (fault.unseen if unseen else fault.severities)
        for architecture in _architectures(fault, architectures)
    )


def _architectures(fault: Fault, wanted: Sequence[str]) -> tuple[str, ...]:
    if not fault.has_architectures:
        return tuple(wanted[:1])
    return tuple(name for name in wanted if name in fault.architectures) or fault.architectures[:1]


def run_of(made: Variant, folder: Path) -> Path:
    """Return the folder of a run, made now if it is not there."""
    place = folder / made.name
    if not (place / "truth.json").is_file():
        shutil.rmtree(place, ignore_errors=True)
        if not _warm:
            _warm.append(WarmPython())
        make(made, place, warm=_warm[0])
    return place


def read(file: Path) -> list[Row]:
    """Return the rows of a file of results; a last line that was cut is left out. Raises UsageError for other files."""
    if not file.is_file():
        return []
    lines = file.read_text(encoding="utf-8").split("\n")
    try:
        rows = [dict(json.loads(line)) for line in lines[:-1]]
    except (ValueError, TypeError) as error:
        raise UsageError(f"{file} does not hold results of the lab ({error}); name another file") from error
    if any("run" not in row for row in rows):
        raise UsageError(f"{file} holds lines without a `run`: no results of the lab; name another file")
    if lines[-1]:
        file.write_text("".join(line + "\n" for line in lines[:-1]), encoding="utf-8")
    return rows


def measured(
    tasks: Sequence[tuple[Any, ...]], work: Callable[..., list[Row]], file: Path, *, jobs: int
) -> Iterator[list[Row]]:
    """Do `work(*task)` for every task in `jobs` processes; its rows are added to `file` and yielded."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as output:
        for rows in _results(tasks, work, jobs):
            output.write("".join(json.dumps(row, sort_keys=True) + "\n" for row in rows))
            output.flush()
            yield rows


def _results(tasks: Sequence[tuple[Any, ...]], work: Callable[..., list[Row]], jobs: int) -> Iterator[list[Row]]:
    if jobs <= 1:
        for task in tasks:
            yield work(*task)
        return
    # spawn: what the parent has loaded (pattern databases, threads of Arrow) is not safe to fork.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = [pool.submit(work, *task) for task in tasks]
        try:
            for done in as_completed(waiting):
                yield done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise

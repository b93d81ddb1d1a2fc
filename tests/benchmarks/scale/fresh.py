"""Jobs in fresh processes: wall time, CPU time and peak resident memory, as the kernel accounts for them.

    from tests.benchmarks.scale.fresh import measure, median, side_by_side

    measure([sys.executable, "-c", "..."], 5)            # five runs of one job
    side_by_side({"ours": [...], "theirs": [...]}, 5)    # five rounds, every job once a round

Nothing else may be imported here: the kernel counts the memory of the process that starts a job as the job's own until
the job grows beyond it, so a bare interpreter (about 9 MB) stands between.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_STARTER = """
import json, os, sys, time
begin = time.perf_counter()
job = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, used = os.wait4(job, 0)
wall = time.perf_counter() - begin
told = [wall, used.ru_utime + used.ru_stime, used.ru_maxrss, os.waitstatus_to_exitcode(status)]
os.write(int(sys.argv[1]), json.dumps(told).encode())
"""


@dataclass(frozen=True)
class Usage:
    """What one run of a job took."""

    wall_s: float
    cpu_s: float
    """User and system time of the job and of the processes that it waited for."""
    peak_mb: float
    """Largest resident memory of the job or of one of its processes, in units of 1e6 bytes."""
    printed: str = ""
    """Standard output of the job."""


def measure(command: Sequence[str], repeats: int = 1) -> list[Usage]:
    """Run a command some times, each in a process of its own, and return what each run took.

    Raises RuntimeError with the end of the standard error where a run ends with another code than 0.
    """
    return [_run(command) for _ in range(repeats)]


def side_by_side(commands: Mapping[str, Sequence[str]], repeats: int) -> dict[str, list[Usage]]:
    """Run every command once a round, so that what else the machine does falls on all of them alike."""
    taken: dict[str, list[Usage]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            taken[name] += measure(command)
    return taken


def median(runs: Sequence[Usage]) -> Usage:
    """Return the medians of some runs, each figure by itself; what was printed is that of the first."""
    return Usage(
        statistics.median(run.wall_s for run in runs),
        statistics.median(run.cpu_s for run in runs),
        statistics.median(run.peak_mb for run in runs),
        runs[0].printed,
    )


def machine() -> str:
    """Say in one line what the figures were taken on, and how busy it was."""
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), model)
    load = ", ".join(f"{item:.1f}" for item in os.getloadavg())
    version = ".".join(map(str, sys.version_info[:3]))
    return f"{model}, {len(os.sched_getaffinity(0))} cores, Python {version}, load average {load}"


def _run(command: Sequence[str]) -> Usage:
    reading, writing = os.pipe()
    try:
        starter = [sys.executable, "-I", "-S", "-c", _STARTER, str(writing), *command]
        done = subprocess.run(
            starter, capture_output=True, text=True, errors="replace", pass_fds=[writing], check=False
        )
    finally:
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            told = pipe.read()
    if not told:
        raise RuntimeError(f"{command[0]} could not be started: {done.stderr[-2000:]}")
    wall, cpu, peak_kib, code = json.loads(told)
    if code:
        raise RuntimeError(f"{' '.join(command[:4])} ended with code {code}: {done.stderr[-2000:]}")
    return Usage(wall, cpu, peak_kib * 1024 / 1e6, done.stdout)

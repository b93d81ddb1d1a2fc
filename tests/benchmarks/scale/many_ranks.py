"""Jobs of many ranks, made and analysed: is the first rank right, is the cause right, and what does it cost?

    python -m tests.benchmarks.scale.many_ranks matrix [--ranks 64]              every fault in every layout
    python -m tests.benchmarks.scale.many_ranks growth [--rank-bytes 20000] [--jobs 2]   64 to 4,096 ranks
    python -m tests.benchmarks.scale.many_ranks large [--total 20e9] [--jobs 2] [--cluster tcp://...]
    python -m tests.benchmarks.scale.many_ranks tiny [--files 20000]             logs of 1 kB in one folder

Every analysis runs in a fresh process without experiments. Inputs are made below `--folder` and removed afterwards,
unless `--keep` is given; an input that is there already is used again.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.benchmarks.scale.fresh import Usage, machine, measure
from tests.benchmarks.scale.rank_logs import FAULTS, LAYOUTS, Job, write

SIZES = (64, 256, 1024, 4096)


class Outcome(NamedTuple):
    """One analysis, and how it went."""

    job: Job
    diagnosis: dict[str, Any]
    usage: Usage
    written: int
    """Bytes of the run directory."""

    @property
    def rank(self) -> int | None:
        """Rank that the diagnosis says failed first."""
        failure = self.diagnosis["failure"] or {}
        rank = failure.get("rank")
        return None if rank is None else int(rank)

    @property
    def cause(self) -> str:
        """Cause of the verdict."""
        return str(self.diagnosis["verdict"]["cause"])

    @property
    def right(self) -> tuple[bool, bool]:
        """Whether the first rank is right, and whether the cause is."""
        return self.rank in self.job.gone, self.cause in self.job.what["causes"]


def analysed(job: Job, folder: Path, *, written: int, extra: Sequence[str] = ()) -> Outcome:
    """Analyse a run in a fresh process."""
    with tempfile.TemporaryDirectory() as out:
        command = [
            sys.executable,
            "-m",
            "rca",
            "analyze",
            str(folder),
            "--experiments",
            "none",
            "-q",
            "-o",
            out,
            *extra,
        ]
        usage = measure(command)[0]
        (result,) = Path(out).glob("*.json")
        return Outcome(job, json.loads(result.read_text("utf-8")), usage, written)


def matrix(ranks: int, folder: Path) -> Iterator[Outcome]:
    """Every fault in every layout."""
    for fault in FAULTS:
        for layout in LAYOUTS:
            job = Job(ranks=ranks, total=ranks * 8000, fault=fault, layout=layout)
            with tempfile.TemporaryDirectory(dir=folder) as run:
                yield analysed(job, Path(run), written=write(job, Path(run)))


def growth(
    sizes: Sequence[int], rank_bytes: int, folder: Path, *, extra: Sequence[str], keep: bool
) -> Iterator[Outcome]:
    """Jobs of more and more ranks whose logs are of one size."""
    for ranks in sizes:
        job = Job(ranks=ranks, total=ranks * rank_bytes)
        run = folder / f"ranks_{ranks}_{rank_bytes}"
        if not run.exists():
            write(job, run)
        size = sum(file.stat().st_size for file in run.rglob("*") if file.is_file())
        yield analysed(job, run, written=size, extra=extra)
        if not keep:
            shutil.rmtree(run)


def tiny(files: int, folder: Path) -> None:
    """Write many small logs, as the tasks of an array leave them."""
    folder.mkdir()
    draw = random.Random(0)
    for number in range(files):
        at = f"2026-03-01 08:{number // 60 % 60:02d}:{number % 60:02d}"
        lines = [f"{at} INFO task {number} starts on node{draw.randrange(512):03d}"]
        lines += [f"{at} INFO item {item} of 12 took {draw.random():.3f} s, nothing unusual" for item in range(12)]
        lines += [f"{at} INFO task {number} is done"]
        (folder / f"worker_{number:05d}.log").write_text("\n".join(lines) + "\n", "utf-8")


def table(outcomes: Iterator[Outcome]) -> None:
    """Print a line for every outcome as it comes."""
    print(machine())
    print("| ranks | fault | layout | MB | first rank | cause | wall s | CPU s | peak MB | MB/s of CPU |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    good = count = 0
    for item in outcomes:
        job, usage = item.job, item.usage
        rank, cause = item.right
        good, count = good + (rank and cause), count + 1
        first = "right" if rank else f"{item.rank} for {job.first}"
        said = item.cause if cause else f"wrong: {item.cause}"
        mb = item.written / 1e6
        print(
            f"| {job.ranks:,} | {job.fault} | {job.layout} | {mb:,.1f} | {first} | {said} | {usage.wall_s:,.1f} | "
            f"{usage.cpu_s:,.1f} | {usage.peak_mb:,.0f} | {mb / usage.cpu_s:,.1f} |",
            flush=True,
        )
    print(f"{good} of {count} right in both.")


def main() -> None:
    """Run one of the measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("matrix", "growth", "large", "tiny"))
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--sizes", type=lambda text: [int(item) for item in text.split(",")], default=list(SIZES))
    parser.add_argument("--rank-bytes", type=int, default=20_000)
    parser.add_argument("--total", type=float, default=20e9)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cluster")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--keep", action="store_true")
    asked = parser.parse_args()
    extra = ["--jobs", str(asked.jobs)] if asked.jobs > 1 else []
    extra += ["--cluster", asked.cluster] if asked.cluster else []
    asked.folder.mkdir(parents=True, exist_ok=True)
    if asked.what == "matrix":
        table(matrix(asked.ranks, asked.folder))
    elif asked.what == "growth":
        table(growth(asked.sizes, asked.rank_bytes, asked.folder, extra=extra, keep=asked.keep))
    elif asked.what == "large":
        size = int(asked.total) // 4096
        table(growth([4096], size, asked.folder, extra=extra, keep=asked.keep))
    else:
        folder = asked.folder / f"tiny_{asked.files}"
        if not folder.exists():
            tiny(asked.files, folder)
        size = sum(file.stat().st_size for file in folder.iterdir())
        found = analysed(Job(ranks=1, total=0), folder, written=size, extra=extra)
        print(machine())
        used = found.usage
        print(f"{asked.files:,} files: {used.wall_s:.1f} s wall, {used.cpu_s:.1f} s CPU, {used.peak_mb:.0f} MB peak")
        print(f"verdict {found.cause}; {found.diagnosis['timings']}")
        if not asked.keep:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()

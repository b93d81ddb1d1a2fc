"""Text at scan speed: mixed logs to an event table, beside what reads, greps or mines the same bytes.

    python -m tests.benchmarks.scale.text [--folder DIR] [--size BYTES] [--rounds N]

Every job is a fresh process. Jobs that are far slower read a part (a tenth, a hundredth) and are scaled; the time of a
job of the same kind on two hundred lines, which imports what is needed, is taken off first. Drain3 is measured where it
is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.scale.fresh import Usage, machine, median, side_by_side

_FILES = (
    "import sys; from pathlib import Path; files = sorted(f for f in Path(sys.argv[1]).rglob('*') if f.is_file())\n"
)
_LINES = """
def lines(share):
    for file in files:
        left = file.stat().st_size // share
        for line in file.open('rb'):
            left -= len(line)
            if left < 0:
                break
            yield line
"""
_RULES = """
from rca.rules.load import load
patterns = [signature.pattern for signature in load().patterns]
"""
_RCA = """
import gc
import sys
from pathlib import Path
import rca.pipeline  # all that an analysis imports anyway
gc.set_threshold(100_000, 50, 50)  # as the command line does
from rca.ingest.places.discover import discover
from rca.ingest.interface import IngestContext
from rca.ingest.read import read_source
from rca.ingest.registry import AFTER_METRICS, BLOCKS, INGESTORS
from rca.ingest.logs.line_search import line_search
from rca.rules.load import load
context = IngestContext(signatures=load().patterns)
line_search(context.signatures, BLOCKS, AFTER_METRICS)
sources = discover(Path(sys.argv[1]))[0]
tables = []
"""
JOBS: dict[str, tuple[int, str]] = {
    "for line in file (text)": (
        1,
        _FILES + "print(sum(1 for file in files for _ in file.open(encoding='utf-8', errors='replace')))",
    ),
    "for line in file (bytes)": (1, _FILES + "print(sum(1 for file in files for _ in file.open('rb')))"),
    "re per line": (
        100,
        _FILES
        + _LINES
        + _RULES
        + "import re\nknown = []\nfor pattern in patterns:\n    try:\n        known.append(re.compile("
        "pattern.encode()).search)\n    except re.error:\n        pass\n"
        "print(sum(any(search(line) for search in known) for line in lines(int(sys.argv[2]))))",
    ),
    "RE2 set per line": (
        10,
        _FILES + _LINES + _RULES + "import re2\noptions = re2.Options()\noptions.max_mem = 256 << 20\n"
        "options.encoding = re2.Options.Encoding.LATIN1\nknown = re2.Set.SearchSet(options)\n"
        "for pattern in patterns:\n    known.Add(pattern)\nknown.Compile()\n"
        "print(sum(bool(known.Match(line)) for line in lines(int(sys.argv[2]))))",
    ),
    "Drain3": (
        100,
        _FILES
        + _LINES
        + "from drain3 import TemplateMiner\nminer = TemplateMiner()\nfor line in lines(int(sys.argv[2])):"
        "\n    miner.add_log_message(line.decode('utf-8', 'replace'))\nprint(len(miner.drain.clusters))",
    ),
    "rca, file to event table": (
        1,
        _RCA
        + """
for source in sources:
    tables.append(read_source(source, INGESTORS, context)[1])
print(sum(0 if found is None else found.events.num_rows for found in tables))
""",
    ),
    "rca, two processes": (
        1,
        _RCA
        + """
from functools import partial
from rca.ingest.places.parallel import in_processes
read = partial(read_source, ingestors=INGESTORS, context=context)
for _, result in in_processes(sources, read, sizes=[source.size for source in sources], jobs=2):
    tables.append(result()[1])
print(sum(0 if found is None else found.events.num_rows for found in tables))
""",
    ),
}
"""Name, which part of the logs is read (one in so many), and the program."""


def main() -> None:
    """Write the logs, run every job in turn, print the medians and the ratios to the bare text loop."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--folder", type=Path, help="logs written before, or where to write them")
    options.add_argument("--size", type=int, default=200_000_000)
    options.add_argument("--rounds", type=int, default=5)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.folder or Path(scratch) / "logs"
        if not folder.exists():
            _write(folder, chosen.size)
        (Path(scratch) / "empty").mkdir()
        (Path(scratch) / "empty" / "a.log").write_text("step 1 loss 2.5\n" * 200)
        _measure(folder, Path(scratch) / "empty", chosen.rounds)


def _write(folder: Path, size: int) -> None:
    from tests.benchmarks.scale.mixed_logs import write_logs

    write_logs(folder, size)


def _measure(folder: Path, empty: Path, rounds: int) -> None:
    files = sorted(str(file) for file in folder.rglob("*") if file.is_file())
    size = sum(Path(file).stat().st_size for file in files)
    commands: dict[str, list[str]] = {"wc -l": ["wc", "-l", *files]}
    starts: dict[str, list[str]] = {}
    for name, (share, program) in JOBS.items():
        if name == "Drain3" and importlib.util.find_spec("drain3") is None:
            continue
        commands[name] = [sys.executable, "-c", program, str(folder), str(share)]
        starts[name] = [sys.executable, "-c", program, str(empty), str(share)]
    print(machine())
    begun = {name: median(runs) for name, runs in side_by_side(starts, 3).items()}
    taken = {name: median(runs) for name, runs in side_by_side(commands, rounds).items()}
    print(f"{size / 1e6:.0f} MB in {len(files)} files, medians of {rounds} rounds; start of the process taken off\n")
    print("| job | part read | CPU s for all | wall s for all | MB/s | times the bare text loop | peak MB |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    nothing = Usage(0.0, 0.0, 0.0)
    parts = {name: JOBS.get(name, (1, ""))[0] for name in taken}
    cpu = {name: (run.cpu_s - begun.get(name, nothing).cpu_s) * parts[name] for name, run in taken.items()}
    wall = {name: (run.wall_s - begun.get(name, nothing).wall_s) * parts[name] for name, run in taken.items()}
    bare = wall["for line in file (text)"]
    for name, seconds in wall.items():
        print(
            f"| {name} | 1/{parts[name]} | {cpu[name]:.2f} | {seconds:.2f} | {size / 1e6 / max(seconds, 1e-3):,.1f} "
            f"| {seconds / bare:,.2f} | {taken[name].peak_mb:.0f} |"
        )
    print(f"\nreports: {taken['rca, file to event table'].printed.strip()} events")


if __name__ == "__main__":
    main()

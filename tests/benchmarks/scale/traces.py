"""Profiler traces: ours, torch-tb-profiler and HolisticTraceAnalysis side by side, plain JSON readers as the floor.

    python -m tests.benchmarks.scale.traces --peers /path/to/venv/bin/python [--folder DIR] [--rounds 5] [--steps 8]

makes a trace of 200 MB (or takes `--trace FILE`) and reads it in fresh processes, every reader once a round. The peers
are no dependencies: `pip install traceinsight==0.6.1 torch-tb-profiler==0.4.3 orjson setuptools` into a virtual
environment of their own (HolisticTraceAnalysis has been named traceinsight since 0.6). Times are CPU seconds of the
reading itself, imports left out; memory is the peak of the whole process. HTA loops over the steps for every event, so
their number decides its time: compare with few and with many.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.scale.fresh import Usage, machine, median, side_by_side

SIZE = 200_000_000
_TIMED = """
import gc, resource, sys, time
path = sys.argv[1]
{imports}
wall, cpu = time.perf_counter(), time.process_time()
{job}
print(time.process_time() - cpu, time.perf_counter() - wall)
"""
OURS = (
    "from pathlib import Path\nimport pandas\nfrom rca.ingest.interface import IngestContext, Source\n"
    "from rca.ingest.traces.profiler_trace import ProfilerTraceIngestor\nfile = Path(path)",
    "found = ProfilerTraceIngestor().read(Source(file.name, file, file.stat().st_size), IngestContext())\n"
    "assert found.events.num_rows",
)
PEERS = {
    "torch-tb-profiler 0.4.3, parse": (
        "import logging\nlogging.disable(logging.CRITICAL)\nfrom torch_tb_profiler.profiler.data import RunProfileData",
        "RunProfileData.parse('worker0', None, path, None)",
    ),
    "HolisticTraceAnalysis, TraceAnalysis": (
        "import logging, os\nlogging.disable(logging.CRITICAL)\nfrom hta.trace_analysis import TraceAnalysis",
        "TraceAnalysis(trace_files={0: os.path.abspath(path)}, trace_dir=os.path.dirname(os.path.abspath(path)))",
    ),
    "orjson.loads, gc off (floor)": ("import orjson", "gc.disable()\norjson.loads(open(path, 'rb').read())"),
}
FLOORS = {
    "msgspec, untyped, gc off (floor)": (
        "import msgspec",
        "gc.disable()\nmsgspec.json.decode(open(path, 'rb').read())",
    ),
    "json.loads, gc off": ("import json", "gc.disable()\njson.loads(open(path, 'rb').read())"),
}


def _step(step: int, steps: int, operators: int) -> Iterator[dict[str, object]]:
    """Yield the events of one training step on the host and on one device: nested operators, launches and kernels."""
    begin, clock, host, stream = 1_000_000.0 * step, 0.0, 4242, 7
    length = 4.0 * operators
    base = {"ph": "X", "pid": host, "tid": host}
    mark = {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begin, "dur": length}
    yield {**base, **mark, "args": {"External id": step, "Ev Idx": step}}
    for index in range(operators):
        number = 100_000 + step * operators + index
        now = begin + clock
        shape = [[64, 128 * (1 + index % 7)], [128 * (1 + index % 7), 512], []]
        args = {
            "External id": number,
            "Record function id": 0,
            "Concrete Inputs": ["", "", "1"],
            "Input type": ["float", "float", "Scalar"],
            "Input Strides": [[512, 1], [1, 512], []],
            "Input Dims": shape,
            "Ev Idx": number,
        }
        name = ("aten::linear", "aten::addmm", "aten::gelu", "aten::native_layer_norm", "aten::add_")[index % 5]
        yield {**base, "cat": "cpu_op", "name": name, "ts": now, "dur": 3.75, "args": args}
        if index % 3 == 0:
            link = {"External id": number, "cbid": 211, "correlation": number}
            call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": now + 1.5, "dur": 1.5, "args": link}
            yield {**base, **call}
            arrow = {"id": number, "cat": "ac2g", "name": "ac2g"}
            yield {"ph": "s", **arrow, "pid": host, "tid": host, "ts": now + 1.5}
            kernel = {
                "queued": 0, "device": 0, "context": 1, "stream": stream, **link, "registers per thread": 96,
                "shared memory": 103808, "blocks per SM": 0.18, "warps per SM": 3.09, "grid": [24, 1, 1],
                "block": [544, 1, 1], "est. achieved occupancy %": 31,
            }  # fmt: skip
            kind = f"void at::native::vectorized_elementwise_kernel<4, at::native::Functor_{index % 90}<float> >(int)"
            on = {"pid": 0, "tid": stream, "ts": now + 9}
            yield {"ph": "X", "cat": "kernel", "name": kind, **on, "dur": 6.5, "args": kernel}
            yield {"ph": "f", **arrow, **on, "bp": "e"}
            yield {"ph": "f", **arrow, **on, "bp": "e"}
        clock += 4.0
    if step == steps - 1:
        yield {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": begin + length + 20}


def make(file: Path, *, size: int = SIZE, steps: int = 8) -> None:
    """Write a trace of about that size as torch 2 writes one, event by event."""
    probe = sum(len(json.dumps(event)) + 4 for event in _step(0, steps, 300))
    operators = max(int(size / steps / probe * 300), 1)
    device = {"id": 0, "name": "Some device", "totalGlobalMem": 85_000_000_000, "computeMajor": 9, "computeMinor": 0,
              "numSms": 132}  # fmt: skip
    with file.open("w", encoding="utf-8") as out:
        head = {"schemaVersion": 1, "deviceProperties": [device], "displayTimeUnit": "ms"}
        out.write(json.dumps(head)[:-1] + ',\n"traceEvents": [\n')
        first = True
        for step in range(steps):
            for event in _step(step, steps, operators):
                out.write(("  " if first else ",\n  ") + json.dumps(event))
                first = False
        out.write('\n],"traceName": "made"}\n')


def command(python: str, job: tuple[str, str], file: Path) -> list[str]:
    """Return the command that runs one reader and prints its CPU and wall seconds."""
    return [python, "-c", _TIMED.format(imports=job[0], job=job[1]), str(file)]


def table(taken: dict[str, list[Usage]], size: int) -> str:
    """Write the medians as a Markdown table, with ratios to our time."""
    rows = ["| reader | CPU s | wall s | MB/s CPU | peak MB | times ours |", "|---|---:|---:|---:|---:|---:|"]
    times = {}
    for name, runs in taken.items():
        figures = [tuple(map(float, run.printed.split())) for run in runs]
        times[name] = tuple(sorted(figure[place] for figure in figures)[len(figures) // 2] for place in (0, 1))
    ours = next(iter(times.values()))[0]
    for name, (cpu, wall) in times.items():
        peak = median(taken[name]).peak_mb
        rows.append(f"| {name} | {cpu:.2f} | {wall:.2f} | {size / 1e6 / cpu:.0f} | {peak:.0f} | {cpu / ours:.1f} |")
    return "\n".join(rows)


def main() -> None:
    """Make the trace, run every reader, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="Python of the environment that holds the peers; without it they are left out")
    parser.add_argument("--folder", type=Path, default=None, help="where the trace is written (default: temporary)")
    parser.add_argument("--trace", type=Path, help="read this trace (plain JSON) instead of one that is made")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--size", type=int, default=SIZE, help="bytes")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        file = asked.trace or Path(folder) / "made.pt.trace.json"
        if asked.trace is None:
            make(file, size=asked.size, steps=asked.steps)
        packed = Path(folder) / "packed.pt.trace.json.gz"
        with file.open("rb") as plain, gzip.open(packed, "wb", compresslevel=6) as out:
            while piece := plain.read(1 << 20):
                out.write(piece)
        commands = {"rca": command(sys.executable, OURS, file), "rca, gzip": command(sys.executable, OURS, packed)}
        commands |= {name: command(sys.executable, job, file) for name, job in FLOORS.items()}
        if asked.peers:
            commands |= {name: command(asked.peers, job, file) for name, job in PEERS.items()}
        size = file.stat().st_size
        taken: dict[str, list[Usage]] = {name: [] for name in commands}
        for number in range(asked.rounds):
            for name, runs in side_by_side(commands, 1).items():
                taken[name] += runs
            told = ", ".join(f"{name} {float(runs[-1].printed.split()[0]):.2f}" for name, runs in taken.items())
            print(f"round {number + 1}, CPU s: {told}", file=sys.stderr, flush=True)
    print(
        f"{size / 1e6:.1f} MB, {packed.name.removeprefix('packed.')} as well; medians of {asked.rounds}; {machine()}\n"
    )
    print(table(taken, size))


if __name__ == "__main__":
    main()

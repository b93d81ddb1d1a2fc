"""TensorBoard event files, file to table: ours beside EventAccumulator, tbparse, the Rust data server and bare `read`.

    pip install -e '.[test]' torch tensorboard tbparse tensorboard-data-server grpcio
    python -m tests.benchmarks.scale.event_files /tmp/event_files --rounds 5

makes the three files if they are not there, reads each with every reader in a fresh process, in turns, and prints the
medians. What is counted is the CPU time from the file to the points in memory, imports left out for everyone; the time
of the Rust data server is that of its process and of the client that fetches the points. `read` is the floor.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.scale.fresh import machine, median, side_by_side

TAGS = [
    "train/loss",
    "train/grad_norm",
    "train/learning_rate",
    "train/loss_scale",
    "train/tokens_per_second",
    "train/accuracy",
    "perf/step_time",
    "perf/memory_allocated",
    "eval/loss",
    "eval/accuracy",
]
INPUTS = ("scalars", "tensors", "histograms")


def make(folder: Path, *, points: int = 1_000_000, histograms: int = 10_000) -> None:
    """Write the files: one million scalars in each encoding, and 10,000 histograms with 10,000 scalars among them."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.summary.writer.record_writer import RecordWriter
    from torch.utils.tensorboard import summary

    side = 1e-12 * 1.1 ** np.arange(774)
    edges = [*(-side[::-1]).tolist(), 0.0, *side.tolist()]  # those that SummaryWriter takes unless it is told
    drawn = np.random.default_rng(0)
    for name in INPUTS:
        file = folder / name / "events.out.tfevents.1700000000.host.1.0"
        if file.exists():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name("partial")
        with partial.open("wb") as stream:
            writer = RecordWriter(stream)
            writer.write(Event(wall_time=1.7e9, file_version="brain.Event:2").SerializeToString())
            for index in range(histograms if name == "histograms" else points):
                step, tag = index // 10, TAGS[index % 10]
                wall = 1.7e9 + step * 0.25 + index % 10 * 1e-3
                if name == "histograms":
                    said = summary.histogram(f"layer{index % 10}/weight", drawn.normal(size=2000), edges)
                    writer.write(Event(wall_time=wall, step=step, summary=said).SerializeToString())
                said = summary.scalar(tag, float(drawn.random()), new_style=name == "tensors")
                writer.write(Event(wall_time=wall, step=step, summary=said).SerializeToString())
        partial.rename(file)


def ours(file: Path) -> Callable[[], int]:
    """The reader of this project, up to its table of events."""
    for late in _IMPORTED_LATE:
        importlib.import_module(late)
    from rca.ingest.event_files.events import TensorBoardIngestor
    from rca.ingest.interface import IngestContext, Source

    source = Source(file.name, file, file.stat().st_size)
    return lambda: TensorBoardIngestor().read(source, IngestContext()).events.num_rows


def event_accumulator(file: Path) -> Callable[[], int]:
    """TensorBoard's own reader, told to keep every point."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def go() -> int:
        found = EventAccumulator(str(file), size_guidance={"scalars": 0, "tensors": 0, "histograms": 0}).Reload()
        kinds = found.Tags()
        scalars = sum(len(found.Scalars(tag)) for tag in kinds["scalars"])
        tensors = sum(len(found.Tensors(tag)) for tag in kinds["tensors"])
        return scalars + tensors + sum(len(found.Histograms(tag)) for tag in kinds["histograms"])

    return go


def tbparse(file: Path) -> Callable[[], int]:
    """The reader that gives pandas frames."""
    from tbparse import SummaryReader

    def go() -> int:
        found = SummaryReader(str(file), event_types={"scalars", "tensors", "histograms"})
        return len(found.scalars) + len(found.tensors) + len(found.histograms)

    return go


def data_server(file: Path) -> Callable[[], int]:
    """TensorBoard's data server in Rust, which samples nothing here, and one request for all scalars."""
    import grpc
    import tensorboard_data_server
    from tensorboard.data.proto import data_provider_pb2 as messages
    from tensorboard.data.proto import data_provider_pb2_grpc as services

    def go() -> int:
        with tempfile.TemporaryDirectory() as folder:
            port = Path(folder) / "port"
            server = subprocess.Popen(
                [
                    tensorboard_data_server.server_binary(),
                    f"--logdir={file.parent}",
                    "--samples-per-plugin=scalars=all",
                    "--reload=once",
                    "--die-after-stdin",
                    f"--port-file={port}",
                ],
                stdin=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            while not port.exists() or not port.read_text().strip():
                time.sleep(0.02)
            options = [("grpc.max_receive_message_length", 1 << 30)]
            channel = grpc.insecure_channel(f"localhost:{port.read_text().strip()}", options=options)
            stub = services.TensorBoardDataProviderStub(channel)
            found, before = 0, -1
            request = messages.ReadScalarsRequest(experiment_id="", plugin_filter={"plugin_name": "scalars"})
            request.downsample.num_points = 1 << 30
            while found != before or not found:
                time.sleep(0.25)
                reply = stub.ReadScalars(request)
                held = [len(tag.data.value) for run in reply.runs for tag in run.tags]
                before, found = found, sum(held)
            assert server.stdin is not None
            server.stdin.close()
            server.wait()
        return found

    return go


def bare_read(file: Path) -> Callable[[], int]:
    """The floor: the bytes, and nothing done with them."""
    return lambda: len(file.read_bytes())


READERS: dict[str, Callable[[Path], Callable[[], int]]] = {
    "read()": bare_read,
    "rca": ours,
    "data server": data_server,
    "EventAccumulator": event_accumulator,
    "tbparse": tbparse,
}
_IMPORTED_LATE = ("pandas", "tensorboard.compat.proto.event_pb2", "tensorboard.plugins.hparams.plugin_data_pb2")
"""What our reader imports at the first record; pandas comes with the first array that pyarrow makes."""
_NEEDS = {"data server": "tensorboard_data_server", "tbparse": "tbparse"}


def _read(reader: str, file: Path) -> None:
    """Read one file once and print what it took; children that were waited for count."""
    work = READERS[reader](file)
    before, begin = os.times(), time.perf_counter()
    points = work()
    wall, after = time.perf_counter() - begin, os.times()
    print(json.dumps({"cpu_s": sum(after[:4]) - sum(before[:4]), "wall_s": wall, "points": points}))


def _table(folder: Path, rounds: int, chosen: list[str]) -> None:
    print(f"{machine()}; medians of {rounds}", flush=True)
    for name in INPUTS:
        (file,) = (folder / name).glob("events.out.tfevents.*")
        command = [sys.executable, "-m", __spec__.name, str(file), "--reader"]
        taken = side_by_side({reader: [*command, reader] for reader in chosen}, rounds)
        told: dict[str, list[dict[str, Any]]] = {
            reader: [json.loads(run.printed.splitlines()[-1]) for run in runs] for reader, runs in taken.items()
        }
        middle = {
            reader: {key: float(np.median([run[key] for run in runs])) for key in ("cpu_s", "wall_s", "points")}
            for reader, runs in told.items()
        }
        print(f"\n{name}, {file.stat().st_size / 1e6:.1f} MB")
        print("| reader | CPU s | wall s | times rca (CPU) | peak MB of the process | points |")
        print("|---|---|---|---|---|---|")
        for reader, figures in middle.items():
            ratio = figures["cpu_s"] / middle["rca"]["cpu_s"]
            peak = median(taken[reader]).peak_mb
            print(
                f"| {reader} | {figures['cpu_s']:.2f} | {figures['wall_s']:.2f} | {ratio:.2f} | {peak:.0f} "
                f"| {figures['points']:,.0f} |",
                flush=True,
            )


def main() -> None:
    """Run one reader, or the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, help="folder of the files, made if absent (or a file, with --reader)")
    parser.add_argument("--points", type=int, default=1_000_000, help="scalars of the files that are made")
    parser.add_argument("--histograms", type=int, default=10_000, help="histograms of the file that is made")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--readers", nargs="+", choices=READERS, default=list(READERS), help="those to run")
    parser.add_argument("--reader", choices=READERS, help="read one file once and say what it took")
    given = parser.parse_args()
    if given.reader:
        _read(given.reader, given.path)
        return
    make(given.path, points=given.points, histograms=given.histograms)
    absent = {reader for reader, package in _NEEDS.items() if importlib.util.find_spec(package) is None}
    for reader in sorted(absent):
        print(f"{reader} is left out: {_NEEDS[reader]} is not installed", file=sys.stderr)
    _table(given.path, given.rounds, [reader for reader in given.readers if reader not in absent])


if __name__ == "__main__":
    main()

"""Ctrl-C, or SIGTERM, while files are read: one line, exit code 130, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SAMPLE = Path(__file__).resolve().parents[1] / "sample_logs" / "rank_crash" / "run" / "train.log"
FILES, FILE_BYTES = 4, 48 << 20
"""Enough that reading takes seconds."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("long") / "run"
    folder.mkdir()
    text = SAMPLE.read_bytes()
    for index in range(FILES):
        with (folder / f"rank_{index}.log").open("wb") as file:
            for _ in range(FILE_BYTES // len(text)):
                file.write(text)
    yield folder
    for file in folder.iterdir():
        file.unlink()


def interrupted(run: Path, folder: Path, number: int, *options: str, reading: Callable[[int], bool]) -> str:
    """Interrupt an analysis once it reads; return what it told beside its progress. Nothing of it may be left."""
    temporary, output = folder / "temporary", folder / "output"
    temporary.mkdir()
    command = [sys.executable, "-m", "rca", "analyze", str(run), "--experiments", "none", "-o", str(output), *options]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert waited(lambda: reading(process.pid) or process.poll() is not None)
    # A terminal sends Ctrl-C to all processes of the job, a scheduler SIGTERM to the first.
    (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
    out, told = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    assert waited(lambda: not alive(process.pid))
    assert not list(temporary.iterdir())
    assert not output.exists()
    return "".join(line for line in told.splitlines(keepends=True) if not line.startswith("rca: reading"))


def waited(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + 120
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def alive(session: int) -> list[int]:
    """Processes of a session that are not over."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, of = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(of) == session and state != "Z":
            found.append(int(folder.name))
    return found


def opens(process: int, folder: Path) -> bool:
    """Whether a process has a file of a folder open, or mapped."""
    try:
        maps = (Path("/proc") / str(process) / "maps").read_text()
        links = [os.readlink(link) for link in (Path("/proc") / str(process) / "fd").iterdir()]
    except OSError:
        return False
    return str(folder) in maps or any(link.startswith(str(folder)) for link in links)


@pytest.mark.slow
def test_while_this_process_reads(run: Path, tmp_path: Path) -> None:
    told = interrupted(run, tmp_path, signal.SIGTERM, reading=lambda process: opens(process, run))
    assert told.strip() == "rca: interrupted"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_while_other_processes_read(run: Path, tmp_path: Path, number: int) -> None:
    def reading(process: int) -> bool:
        return any(opens(other, run) for other in alive(process) if other != process)

    told = interrupted(run, tmp_path, number, "--jobs", "2", reading=reading)
    assert told.strip() == "rca: interrupted"


@pytest.mark.slow
def test_while_a_cluster_reads(run: Path, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=60
    ) as cluster:
        scheduler = cluster.scheduler
        (worker,) = scheduler.workers.values()
        options = ("--cluster", cluster.scheduler_address)
        told = interrupted(run, tmp_path, signal.SIGINT, *options, reading=lambda _: len(worker.processing) > 0)
        assert told.strip() == "rca: interrupted"
        assert waited(lambda: not scheduler.tasks)
        assert list(scheduler.workers.values()) == [worker]

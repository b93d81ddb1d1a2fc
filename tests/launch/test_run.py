"""What `rca run` lets through, what it keeps, and when it analyses."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

RCA = (sys.executable, "-m", "rca")
FAILS = """
import sys
print("step 1 loss 2.5", flush=True)
raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (4x10 and 20x5)")
"""


def rca_run(
    folder: Path, *command: str, options: tuple[str, ...] = (), **environ: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*RCA, "run", "--run-dir", "job", *options, "--", *command],
        cwd=folder,
        capture_output=True,
        env={**os.environ, **environ},
        check=False,
        timeout=120,
    )


def kept(folder: Path, name: str = "rca-run.json") -> bytes:
    return (folder / "job" / "rca-run" / name).read_bytes()


def test_output_and_success_pass_through(tmp_path: Path) -> None:
    odd = bytes(range(256))
    code = f"import sys; sys.stdout.buffer.write({odd!r}); sys.stderr.buffer.write({odd[::-1]!r})"
    done = rca_run(tmp_path, sys.executable, "-c", code)
    assert (done.returncode, done.stdout, done.stderr) == (0, odd, odd[::-1])
    assert (kept(tmp_path, "stdout.log"), kept(tmp_path, "stderr.log")) == (odd, odd[::-1])
    record = json.loads(kept(tmp_path))
    assert (record["exit_code"], record["rank"], record["world_size"]) == (0, None, 1)
    assert record["peak_rss_bytes"] > 1 << 20
    assert not (tmp_path / "reports").exists()


def test_a_failure_is_analysed_and_its_code_passes_through(tmp_path: Path) -> None:
    done = rca_run(tmp_path, sys.executable, "-c", FAILS, MY_API_TOKEN="sk-proj-abcdefghijklmnopqrstuvwx1234")
    assert done.returncode == 1
    assert done.stdout == b"step 1 loss 2.5\n"
    assert b"RuntimeError: mat1 and mat2" in done.stderr
    assert b"report: reports/job.html" in done.stderr
    diagnosis = json.loads((tmp_path / "reports" / "job.json").read_text())
    assert diagnosis["failure"]["event"] if "event" in diagnosis["failure"] else diagnosis["failure"]["what"]
    assert {item["path"] for item in diagnosis["sources"]} >= {"rca-run/stderr.log", "rca-run/rca-run.json"}
    variables = kept(tmp_path, "environment.txt")
    assert b"MY_API_TOKEN=<secret>" in variables
    assert b"abcdefghijklmnop" not in variables
    assert b"numpy==" in kept(tmp_path, "pip_freeze.txt")


NO_ANALYSIS = ("--rules", "no-such-folder")
"""What goes wrong in the analysis changes nothing of how the command ended."""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_that_ends_the_command_ends_rca(tmp_path: Path, number: signal.Signals) -> None:
    code = f"import os; os.kill(os.getpid(), {int(number)})"
    done = rca_run(tmp_path, sys.executable, "-c", code, options=NO_ANALYSIS)
    assert done.returncode == -number
    assert b"the run was not analysed" in done.stderr
    assert json.loads(kept(tmp_path))["exit_code"] == -number


def test_signals_to_rca_reach_the_command(tmp_path: Path) -> None:
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGUSR1, lambda *_: print('saved', flush=True))\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(77))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [*RCA, "run", "--run-dir", "job", *NO_ANALYSIS, "--", sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        for number, said in ((signal.SIGUSR1, b"ready\n"), (signal.SIGTERM, b"saved\n")):
            assert process.stdout.readline() == said
            process.send_signal(number)
        assert process.wait(60) == 77


BYE = """
import time
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("bye", flush=True)
    raise SystemExit(3)
"""


def in_terminal(folder: Path, code: str, *, keys: bytes = b"") -> tuple[int, bytes]:
    """Run a program in a terminal, type when it is ready; return its exit code and what was seen."""
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored where the tests run in the background of a shell
        os.chdir(folder)
        os.execv(sys.executable, [*RCA, "run", "--run-dir", "job", "--", sys.executable, "-c", code])
    seen = b""
    with contextlib.suppress(OSError):  # the terminal is gone with the last process in it
        while True:
            seen += os.read(terminal, 1000)
            if keys and b"ready" in seen:
                os.write(terminal, keys)
                keys = b""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen


def test_ctrl_c_in_a_terminal_ends_the_command_and_is_no_failure(tmp_path: Path) -> None:
    code, seen = in_terminal(tmp_path, BYE, keys=b"\x03")
    assert code == 3
    assert b"bye" in seen
    assert b"bye" in kept(tmp_path, "stdout.log")
    assert not (tmp_path / "reports").exists()


def test_a_terminal_stays_a_terminal_for_the_command(tmp_path: Path) -> None:
    _, seen = in_terminal(tmp_path, "import os, sys; print(sys.stdout.isatty(), os.get_terminal_size().columns)")
    assert seen.startswith(b"True ")
    assert seen.endswith(b"\r\n")
    assert b"\r" not in kept(tmp_path, "stdout.log")


def test_a_reader_that_goes_away_is_told_to_the_command(tmp_path: Path) -> None:
    code = "import sys\nfor _ in range(10**6): print('x' * 100)"
    quoted = " ".join([*RCA, "run", "--run-dir", "job", *NO_ANALYSIS, "--", sys.executable, "-c", f'"{code}"'])
    piped = ["bash", "-c", f"{quoted} 2>/dev/null | head -1"]
    done = subprocess.run(piped, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert done.stdout == b"x" * 100 + b"\n"
    assert len(kept(tmp_path, "stdout.log")) < 50_000_000


def test_what_a_left_behind_process_holds_open_does_not_hold_us(tmp_path: Path) -> None:
    start = time.monotonic()
    code = (
        "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(40)']); print('done')"
    )
    done = rca_run(tmp_path, sys.executable, "-c", code)
    assert (done.returncode, done.stdout) == (0, b"done\n")
    assert time.monotonic() - start < 35


def test_a_command_that_is_not_there_is_told(tmp_path: Path) -> None:
    done = rca_run(tmp_path, "no-such-program")
    assert done.returncode == 2
    assert b"no-such-program cannot be started" in done.stderr


def test_the_first_task_that_fails_analyses_all(tmp_path: Path) -> None:
    tasks = [
        subprocess.Popen(
            [*RCA, "run", "--run-dir", "job", "--", sys.executable, "-c", FAILS if rank == 1 else "print('fine')"],
            cwd=tmp_path,
            env={**os.environ, "SLURM_PROCID": str(rank), "SLURM_NTASKS": "3"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for rank in range(3)
    ]
    said = [task.communicate(timeout=120)[1] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 1, 0]
    assert [b"report: " in text for text in said] == [False, True, False]
    diagnosis = json.loads((tmp_path / "reports" / "job.json").read_text())
    assert diagnosis["failure"]["rank"] == 1
    assert {item["path"].split("/")[1] for item in diagnosis["sources"]} >= {"rank_0", "rank_1", "rank_2"}


def test_tasks_without_a_common_folder_are_told(tmp_path: Path) -> None:
    done = subprocess.run(
        [*RCA, "run", "--", "true"],
        cwd=tmp_path,
        capture_output=True,
        env={**{k: v for k, v in os.environ.items() if not k.startswith("SLURM")}, "RANK": "1", "WORLD_SIZE": "2"},
        check=False,
    )
    assert done.returncode == 2
    assert b"--run-dir" in done.stderr


@pytest.mark.slow
def test_torchrun_keeps_the_output_of_every_worker(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "train.py"
    script.write_text(
        "import os, time\nrank = int(os.environ['RANK'])\nprint('hello of', rank, flush=True)\n"
        "time.sleep(1 if rank else 30)\nraise ValueError('only this rank')\n"
    )
    done = rca_run(tmp_path, sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(script))
    assert done.returncode == 1
    logs = sorted((tmp_path / "job" / "rca-run" / "workers").rglob("std*.log"))
    assert {log.parent.name for log in logs} == {"0", "1"}
    diagnosis = json.loads((tmp_path / "reports" / "job.json").read_text())
    assert diagnosis["failure"]["rank"] == 1

"""One line that says how a process ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

EXITS: list[tuple[str, list[float], dict[str, Any]]] = [
    ("srun: error: a100-07: task 5: Exited with exit code 1", [1], {"task": 5}),
    ("srun: error: gpu-c03: tasks 0-2,6: Aborted (core dumped)", [-6] * 4, {"signal": "SIGABRT"}),
    ("srun: error: tern-3018: task 2: Killed", [-9], {"signal": "SIGKILL"}),
    ("srun: error: n1: task 0: Out Of Memory", [-9], {"reason": "out of memory"}),
    ("srun: error: n1: task 0: Segmentation fault (core dumped)", [-11], {}),
    ("Killed", [-9], {"signal": "SIGKILL"}),
    ("[rank0]: Killed", [-9], {}),
    ("Aborted (core dumped)", [-6], {}),
    ("Segmentation fault (core dumped)", [-11], {}),
    ("Bus error (core dumped)", [-7], {}),
    ("./run.sh: line 12: 12345 Killed                  python train.py --lr 1", [-9], {"pid": 12345}),
    ("[1]+  12345 Terminated              python train.py", [], {}),
    ("failed (exitcode: -6) local_rank: 1 (pid: 20712) of binary: /usr/bin/python", [-6], {"local_rank": 1}),
    ("process exited with status 1 after 6s; restarting in 10s (attempt 2/5)", [1], {}),
    ("Worker (pid:7) exited with code 3", [3], {"pid": 7}),
    ("Process finished with exit code 139 (interrupted by signal 11: SIGSEGV)", [-11], {"exit_code": 139}),
    ("torchrun finished, exit status 0", [0], {}),
    ("# Ended (code 0) at Thu Feb 11 13:50:05 2021, elapsed time 12600 seconds", [0], {}),
    ("# Ended (code 137) at Thu Feb 11 13:50:05 2021, elapsed time 12 seconds", [-9], {"exit_code": 137}),
    ("Exit Code:    137", [-9], {"exit_code": 137}),
    ("command terminated with exit code 143", [-15], {}),
    ("['python', '-u', 'a.py', '--local_rank=3'] exits with return code = -9", [-9], {"local_rank": 3}),
    ("mpirun noticed that process rank 3 with PID 99 on node n7 exited on signal 9 (Killed).", [-9], {"pid": 99}),
    ("[n7:00099] Signal: Segmentation fault (11)", [-11], {"pid": 99}),
    ("subprocess died with signal 9", [-9], {}),
    # what is no exit
    ("exit code", [], {}),
    ('INFO: "POST /v1/x HTTP/1.1" 500 finished with status code 500', [], {}),
    ("RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed. ", [], {}),
    ("Process was Killed by the user", [], {}),
    ("[Killed] or not", [], {}),
]


@pytest.mark.parametrize(("line", "codes", "attrs"), EXITS, ids=[row[0][:50] for row in EXITS])
def test_exit(read: Callable, line: str, codes: list[float], attrs: dict[str, Any]) -> None:
    found = read("run.log", f"2024-01-01 00:00:00 start\n{line}\n").table.of_kind("process")
    assert [event.value for event in found] == codes
    for key, value in attrs.items():
        assert found[0].attr(key) == value, key
    for event in found:
        assert event.name == "process.exit"
        assert event.severity == ("info" if event.value == 0 else "error")
        assert event.line == 2


def test_tasks_are_told_one_by_one_and_bounded(read: Callable) -> None:
    found = read("a.err", "srun: error: n: tasks 0-99999: Killed\n").table.of_kind("process")
    assert [event.attr("task") for event in found] == list(range(256))


def test_mpi_names_rank_and_host(read: Callable) -> None:
    line = "mpirun noticed that process rank 3 with PID 99 on node n7 exited on signal 9 (Killed).\n"
    (event,) = read("a.err", line).table.of_kind("process")
    assert (event.rank, event.host) == (3, "n7")


def test_a_local_rank_becomes_global_where_the_log_tells_the_first(read: Callable) -> None:
    text = "failed (exitcode: 1) local_rank: 0 (pid: 7) of binary: p\n  rank      : 4 (local_rank: 0)\n"
    (event,) = read("a.err", text).table.of_kind("process")
    assert event.rank == 4

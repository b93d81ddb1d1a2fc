"""The child process: whatever a job or the child itself does, the parent gets an answer in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rca.experiments.twin.config import TwinConfig
from rca.experiments.workbench import TIME_OVER, Answer, Task, Workbench

HOSTILE = str(Path(__file__).with_name("hostile_child.py"))
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def training(cpu_seconds: float = 60, memory_bytes: int = 2**30, **settings: Any) -> Task:
    config = TwinConfig(**{"family": "mlp", "steps": 3, **settings})
    payload = {"config": config.model_dump(mode="json"), "seed": 0, "device": "cpu"}
    return Task("train", payload, cpu_seconds=cpu_seconds, memory_bytes=memory_bytes)


def soon(seconds: float = 60) -> float:
    return time.monotonic() + seconds


@pytest.fixture
def hostile() -> Iterator[Workbench]:
    """The real server without torch, its jobs replaced."""
    made = Workbench(command=(sys.executable, HOSTILE))
    yield made
    made.close()


def do(bench: Workbench, kind: str, *, within: float = 60, cpu_seconds: float = 60, **payload: Any) -> Answer:
    return bench.run([Task(kind, payload, cpu_seconds=cpu_seconds)], deadline=soon(within))[0]


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether it becomes true within ten seconds."""
    end = time.monotonic() + 10
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def note(path: Path) -> list[int]:
    """What a job wrote about itself: process, group, session, niceness."""
    assert eventually(lambda: path.exists() and path.read_text(encoding="ascii").count(" ") == 3)
    return [int(word) for word in path.read_text(encoding="ascii").split()]


# Real trainings


def test_answers_come_in_order_and_are_remembered(bench: Workbench) -> None:
    tasks = [training(lr=rate) for rate in (0.01, 0.02, 0.01)]
    answers = bench.run(tasks, deadline=soon())
    assert [answer.error for answer in answers] == ["", "", ""]
    assert answers[0] == answers[2]
    assert answers[0].result["losses"] != answers[1].result["losses"]
    assert bench.run(tasks, deadline=soon(0)) == answers


def test_an_error_of_a_job_is_an_answer(bench: Workbench) -> None:
    wrong = Task("train", {"config": {"colour": "red"}, "seed": 0, "device": "cpu"})
    answers = bench.run([wrong, Task("cook", {})], deadline=soon())
    assert "colour" in answers[0].error
    assert "unknown task" in answers[1].error


def test_a_training_that_takes_too_much_memory_says_so(bench: Workbench) -> None:
    greedy = training(batch=8, width=60_000, memory_bytes=64 * 2**20)
    answer = bench.run([greedy], deadline=soon())[0]
    assert answer.result is None
    assert answer.error.startswith("the job ran out of memory (limit 0.0625 GiB beside the libraries)")


def test_the_server_never_initialises_cuda_nor_starts_threads_that_forbid_forking(bench: Workbench) -> None:
    assert bench.run([training(lr=0.07)], deadline=soon())[0].error == ""
    assert bench._child is not None
    maps = Path(f"/proc/{bench._child.pid}/maps").read_text(encoding="utf-8", errors="replace")
    assert "libcuda.so" not in maps
    environment = Path(f"/proc/{bench._child.pid}/environ").read_bytes().split(b"\0")
    assert b"CUDA_VISIBLE_DEVICES=" in environment
    assert b"OMP_NUM_THREADS=1" in environment


def test_the_run_directory_is_not_on_the_path_of_the_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "transformers", "selectors"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('hostile')")
    monkeypatch.chdir(tmp_path)
    # Like `-m`, `-c` puts the working directory first on the path.
    program = f"import runpy; runpy.run_path({HOSTILE!r}, run_name='__main__')"
    bench = Workbench(command=(sys.executable, "-c", program))
    assert do(bench, "anything") == Answer("done")
    bench.close()


# Jobs that misbehave


@pytest.mark.parametrize(
    ("kind", "payload", "said"),
    [
        ("raise", {}, "ValueError: wrong in two lines"),
        ("abort", {}, "ended by SIGABRT, a library gave up"),
        ("kill", {"signal": "SIGKILL"}, "ended by SIGKILL, from outside or because the system had no memory left"),
        ("kill", {"signal": "SIGSEGV"}, "ended by SIGSEGV"),
        ("realtime", {}, "ended by signal 40"),
        ("leave", {}, "left with code 3 and no answer"),
        ("hoard", {"bytes": 2**33}, "ran out of memory (limit 2 GiB beside the libraries)"),
        ("flood", {}, "answered with more than 8 MiB"),
        ("endless", {}, "answered with more than 8 MiB"),
        ("garbage", {}, "answered with something that is no result"),
        ("close", {}, "ended by SIGKILL"),
        ("heir", {}, "left with code 5"),
    ],
)
def test_what_a_job_does_is_an_answer_and_the_next_one_works(
    hostile: Workbench, kind: str, payload: dict[str, Any], said: str
) -> None:
    assert do(hostile, "warm") == Answer("done")
    child = hostile._child
    answer = do(hostile, kind, **payload)
    assert answer.result is None
    assert said in answer.error
    assert do(hostile, "after", value=1) == Answer(1)
    assert hostile._child is child


def test_a_job_has_no_way_to_the_pipes_of_the_server(hostile: Workbench) -> None:
    assert do(hostile, "print") == Answer("done")
    assert do(hostile, "read") == Answer("")


def test_a_job_cannot_fill_the_disk(hostile: Workbench, tmp_path: Path) -> None:
    answer = do(hostile, "file", path=str(tmp_path / "large"))
    assert "File too large" in answer.error


def test_too_much_cpu_time_is_an_answer(hostile: Workbench) -> None:
    answer = do(hostile, "spin", cpu_seconds=1)
    assert "ended by SIGXCPU, its CPU limit (limits: 25 s, 1 s of CPU time, 2 GiB of memory)" in answer.error


def test_a_job_that_hangs_is_stopped_at_its_limit(hostile: Workbench) -> None:
    task = Task("hang", {}, cpu_seconds=-3.9)  # 5 x CPU + 20 s of wall time
    answer = hostile.run([task], deadline=soon())[0]
    assert "stopped at its time limit (0.5 s" in answer.error


def test_a_stopped_job_is_killed_at_the_deadline_and_the_child_stays(hostile: Workbench, tmp_path: Path) -> None:
    assert do(hostile, "warm") == Answer("done")
    child = hostile._child
    path = tmp_path / "note"
    answers = hostile.run(
        [Task("kill", {"signal": "SIGSTOP", "note": str(path)}), Task("quick", {})], deadline=soon(1.5)
    )
    assert answers == [Answer(error=TIME_OVER), Answer("done")]
    assert eventually(lambda: not alive(note(path)[0]))
    assert do(hostile, "after") == Answer("done")
    assert hostile._child is child


def test_a_job_has_its_own_group_in_the_session_of_the_server_and_low_priority(
    hostile: Workbench, tmp_path: Path
) -> None:
    do(hostile, "any", note=str(tmp_path / "note"))
    pid, group, session, nice = note(tmp_path / "note")
    assert hostile._child is not None
    assert group == pid
    assert session == hostile._child.pid != os.getsid(0)
    assert nice >= 10


# A child that misbehaves


def test_a_fork_that_fails_is_an_answer() -> None:
    bench = Workbench(command=(sys.executable, HOSTILE, "no-fork"))
    answer = do(bench, "any")
    assert answer.error == "the system could not start a process for the job: Resource temporarily unavailable"
    assert bench._child is not None
    bench.close()


@pytest.mark.parametrize("when", ["before", "during"])
def test_a_killed_child_is_an_answer_and_is_started_again(hostile: Workbench, tmp_path: Path, when: str) -> None:
    assert do(hostile, "warm") == Answer("done")
    assert hostile._child is not None
    if when == "before":
        os.kill(hostile._child.pid, signal.SIGKILL)
        answer = do(hostile, "hang")
    else:
        path = tmp_path / "note"
        script = f"while [ ! -s {path} ]; do sleep 0.05; done; kill -KILL {hostile._child.pid}"
        killer = subprocess.Popen(["sh", "-c", script])
        answer = do(hostile, "hang", note=str(path))
        killer.wait()
        assert eventually(lambda: not alive(note(path)[0]))
    assert answer.error == "the child process was ended by SIGKILL"
    assert do(hostile, "after") == Answer("done")


def test_a_child_that_does_not_start_says_why_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\")")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    bench = Workbench()
    bench.warm_up()
    answers = bench.run([training(lr=rate) for rate in (0.1, 0.2, 0.3)], deadline=soon())
    said = "the child process did not start, it ended: ModuleNotFoundError: No module named 'torch'"
    assert [answer.error for answer in answers] == [said] * 3
    bench.close()


def test_a_program_that_is_not_there_is_an_answer() -> None:
    bench = Workbench(command=("/nowhere/python",))
    bench.warm_up()
    assert "could not be started" in do(bench, "any").error


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("print('hello')", "wrote something that is no answer"),
        ("print('[1, 2]')", "wrote something that is no answer"),
        ("print('{}')", "wrote something that is no answer"),
        ("import sys\nwhile True: sys.stdout.write('x' * 2**20)", "wrote 16 MiB without finishing an answer"),
        ("import os; os.abort()", "did not start, it was ended by SIGABRT"),
        ("raise SystemExit(7)", "did not start, it ended: it closed its output"),
    ],
)
def test_a_child_that_talks_nonsense_is_ended(program: str, said: str) -> None:
    bench = Workbench(command=(sys.executable, "-c", program))
    assert said in do(bench, "any").error
    assert bench._child is None


def test_the_parent_never_waits_past_the_deadline_for_a_child_that_does_not_read() -> None:
    bench = Workbench(command=(sys.executable, "-c", "import time; time.sleep(600)"))
    tasks = [Task("any", {"filling": "x" * 2**20, "number": number}) for number in range(3)]
    started = time.monotonic()
    answers = bench.run(tasks, deadline=started + 0.5)
    assert [answer.error for answer in answers] == [TIME_OVER] * 3
    assert time.monotonic() - started < 30
    bench.close()


def test_the_parent_never_waits_past_the_deadline_for_a_child_that_stopped(hostile: Workbench) -> None:
    assert do(hostile, "warm") == Answer("done")
    assert hostile._child is not None
    pid = hostile._child.pid
    os.kill(pid, signal.SIGSTOP)
    assert do(hostile, "any", within=0.3).error == TIME_OVER
    assert hostile._child is None
    assert not alive(pid)
    assert do(hostile, "any") == Answer("done")


def test_no_time_starts_nothing() -> None:
    bench = Workbench(command=(sys.executable, HOSTILE))
    assert do(bench, "any", within=0).error == TIME_OVER
    assert bench._child is None


# The end


def test_closing_ends_the_child_and_its_jobs(hostile: Workbench, tmp_path: Path) -> None:
    path = tmp_path / "note"
    assert do(hostile, "warm") == Answer("done")
    assert hostile._child is not None
    child = hostile._child.pid
    hostile._child.post(
        {
            "id": 99,
            "task": "hang",
            "payload": {"note": str(path)},
            "memory_bytes": 0,
            "cpu_seconds": 60,
            "wall_seconds": 600,
        }
    )
    hostile._child.exchange(soon(0.5))
    job = note(path)[0]
    hostile.close()
    hostile.close()
    assert eventually(lambda: not alive(job))
    assert not alive(child)


def test_nothing_outlives_a_parent_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "note"
    program = (
        "import sys, time\n"
        "from rca.experiments.workbench import Task, Workbench\n"
        f"bench = Workbench(command=(sys.executable, {HOSTILE!r}))\n"
        "bench.warm_up()\n"
        "print(bench._child.pid, flush=True)\n"
        f"bench.run([Task('hang', {{'note': {str(path)!r}}})], deadline=time.monotonic() + 600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    job = note(path)[0]
    assert alive(child)
    assert alive(job)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert eventually(lambda: not alive(job))
    assert eventually(lambda: not alive(child))

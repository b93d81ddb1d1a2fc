"""The child process: whatever a job does, the parent gets an answer."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from rca.experiments.twin.config import TwinConfig
from rca.experiments.workbench import Task, Workbench


def training(cpu_seconds: float = 60, memory_bytes: int = 2**30, **settings: Any) -> Task:
    config = TwinConfig(**{"family": "mlp", "steps": 3, **settings})
    payload = {"config": config.model_dump(mode="json"), "seed": 0, "device": "cpu"}
    return Task("train", payload, cpu_seconds=cpu_seconds, memory_bytes=memory_bytes)


def test_answers_come_in_order_and_are_remembered(bench: Workbench, soon: float) -> None:
    tasks = [training(lr=rate) for rate in (0.01, 0.02, 0.01)]
    answers = bench.run(tasks, deadline=soon)
    assert [answer.error for answer in answers] == ["", "", ""]
    assert answers[0] == answers[2]
    assert answers[0].result["losses"] != answers[1].result["losses"]
    started = time.monotonic()
    assert bench.run(tasks, deadline=soon) == answers
    assert time.monotonic() - started < 0.1


def test_an_error_of_a_job_is_an_answer(bench: Workbench, soon: float) -> None:
    wrong = Task("train", {"config": {"colour": "red"}, "seed": 0, "device": "cpu"})
    answers = bench.run([wrong, Task("cook", {})], deadline=soon)
    assert "colour" in answers[0].error
    assert "unknown task" in answers[1].error


def test_too_much_memory_is_an_answer(bench: Workbench, soon: float) -> None:
    greedy = training(batch=8, width=60_000, memory_bytes=64 * 2**20)
    answer = bench.run([greedy], deadline=soon)[0]
    assert answer.result is None
    assert "memory" in answer.error.lower() or "alloc" in answer.error.lower()


def test_too_much_cpu_time_is_an_answer(bench: Workbench, soon: float) -> None:
    answer = bench.run([training(steps=10_000_000, cpu_seconds=1)], deadline=soon)[0]
    assert "SIGXCPU" in answer.error or "SIGKILL" in answer.error
    assert bench.run([training(lr=0.03)], deadline=soon)[0].error == ""


def test_a_deadline_ends_everything_and_the_next_call_starts_afresh(soon: float) -> None:
    bench = Workbench()
    endless = training(steps=10_000_000, cpu_seconds=500)
    started = time.monotonic()
    answer = bench.run([endless], deadline=time.monotonic() + 1)[0]
    assert "time" in answer.error
    assert time.monotonic() - started < 10
    assert bench._process is None
    bench.close()


def test_a_killed_child_is_an_answer_and_is_started_again(soon: float) -> None:
    bench = Workbench()
    assert bench.run([training(lr=0.04)], deadline=soon)[0].error == ""
    assert bench._process is not None
    os.kill(bench._process.pid, signal.SIGKILL)
    assert "ended" in bench.run([training(lr=0.05)], deadline=soon)[0].error
    assert bench.run([training(lr=0.05)], deadline=soon)[0].error == ""
    bench.close()
    bench.close()


def test_an_abort_inside_a_job_names_the_signal(soon: float) -> None:
    from rca.experiments import child

    job = child._Job(id=1, pid=0, fd=0, deadline=0, limits="1 s of wall time")
    assert "SIGABRT" in child._death(job, signal.SIGABRT)
    assert "code 3" in child._death(job, 3 << 8)
    job.late = True
    assert "time limit" in child._death(job, signal.SIGKILL)


def test_the_run_directory_is_not_on_the_path_of_the_child(tmp_path: Any, monkeypatch: Any, soon: float) -> None:
    (tmp_path / "torch.py").write_text("raise SystemExit('hostile')")
    (tmp_path / "transformers.py").write_text("raise SystemExit('hostile')")
    monkeypatch.chdir(tmp_path)
    bench = Workbench()
    assert bench.run([training(lr=0.06)], deadline=soon)[0].error == ""
    bench.close()

"""The parent's side of the child process: start it late, keep it busy, survive it.

Nothing that a job does reaches the caller as an exception: a job that failed is an answer with a reason. Arms are
remembered, so that experiments on the same twin share their reference and control.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import rca

MEMORY_BYTES = 2 * 2**30
"""Address space that a CPU job may take on top of the imported libraries; a tiny training needs a fifth of it."""
TIME_OVER = "the time for experiments was over"


@dataclass(frozen=True)
class Task:
    """One job for the child."""

    kind: str
    """`train`, `memory`, `probe` or `loop`."""
    payload: Mapping[str, Any]
    cpu_seconds: float = 60.0
    memory_bytes: int = MEMORY_BYTES

    family: str = ""
    """Class of the model that it builds, so that the child can import it once for all jobs."""

    @property
    def key(self) -> str:
        """What makes two tasks the same."""
        return json.dumps([self.kind, self.payload], sort_keys=True)


@dataclass(frozen=True)
class Answer:
    """What came of one task: a result, or the reason why there is none."""

    result: Any = None
    error: str = ""


@dataclass
class Workbench:
    """A child process that answers tasks, two at a time."""

    device: str = "cpu"
    workers: int = 2
    known: dict[str, Answer] = field(default_factory=dict)
    notify: Callable[[int, int], None] | None = None
    """Told how many of the tasks asked for are done, and how many there are."""
    _process: subprocess.Popen[bytes] | None = None
    _stderr: IO[bytes] | None = None
    _buffer: bytes = b""
    _next: int = 0

    def run(self, tasks: Sequence[Task], *, deadline: float) -> list[Answer]:
        """Return one answer a task, in order; tasks still open at `deadline` (monotonic clock) end as an error."""
        answers = {task.key: self.known[task.key] for task in tasks if task.key in self.known}
        waiting = list({task.key: task for task in tasks if task.key not in answers}.values())
        open_: dict[int, str] = {}
        planned = len(answers) + len(waiting)
        while waiting or open_:
            if self.notify is not None:
                self.notify(planned - len(waiting) - len(open_), planned)
            left = deadline - time.monotonic()
            if left <= 0:
                self._give_up(answers, [*open_.values(), *(task.key for task in waiting)])
                break
            try:
                while waiting and len(open_) < self.workers:
                    task = waiting.pop(0)
                    open_[self._send(task, left)] = task.key
                lines = self._lines(left)
            except OSError as error:
                reason = f"the child process ended: {self._last_words() or error}"
                self.close()
                for key in open_.values():
                    answers[key] = Answer(error=reason)
                open_ = {}
                continue
            for line in lines:
                key = open_.pop(line["id"], "")
                if key:
                    answer = Answer(line.get("result"), line.get("error", ""))
                    answers[key] = answer
                    if not answer.error:
                        self.known[key] = answer
        return [answers.get(task.key, Answer(error="it was not started")) for task in tasks]

    def close(self) -> None:
        """End the child process and everything that it started."""
        process, self._process = self._process, None
        self._buffer = b""
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None

    def _give_up(self, answers: dict[str, Answer], keys: Iterable[str]) -> None:
        for key in keys:
            answers[key] = Answer(error=TIME_OVER)
        self.close()

    def _send(self, task: Task, left: float) -> int:
        process = self._started()
        self._next += 1
        on_cpu = self.device == "cpu"
        request = {
            "id": self._next,
            "task": task.kind,
            "payload": task.payload,
            "family": task.family,
            "memory_bytes": task.memory_bytes if on_cpu else 0,
            "cpu_seconds": task.cpu_seconds,
            "wall_seconds": max(1.0, min(left, 5 * task.cpu_seconds + 20)),
        }
        if process.stdin is None:
            raise BrokenPipeError("the child has no standard input")
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        return self._next

    def _lines(self, seconds: float) -> list[dict[str, Any]]:
        """Wait for at least one complete answer, at most `seconds`."""
        process = self._started()
        if process.stdout is None:
            raise BrokenPipeError("the child has no standard output")
        end = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(timeout=max(0.0, end - time.monotonic())):
                    return []
                chunk = os.read(process.stdout.fileno(), 1 << 16)
                if not chunk:
                    raise BrokenPipeError("the child closed its output")
                self._buffer += chunk
        *lines, self._buffer = self._buffer.split(b"\n")
        return [json.loads(line) for line in lines]

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None:
            return self._process
        home = Path(rca.__file__).resolve().parents[1]
        self._stderr = TemporaryFile()  # noqa: SIM115 - lives as long as the child
        # The folder of the package as working directory: `python -m` puts it first on the path, and a run directory
        # must never be there.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "rca.experiments.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            cwd=home,
            env=_environment(self.device),
            start_new_session=True,
        )
        return self._process

    def _last_words(self) -> str:
        if self._stderr is None:
            return ""
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - 2000))
        lines = self._stderr.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:300] if lines else ""


def _environment(device: str) -> dict[str, str]:
    """One thread an arm, no hub, no GPU unless asked for: with two busy threads on two cores a step takes ten times
    as long as with one."""
    return {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "PYTHONWARNINGS": "ignore",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        **({"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}),
    }

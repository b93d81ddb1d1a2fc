"""The parent's side of the child process: start it late, keep it busy, survive it.

Nothing that a job does reaches the caller as an exception: a job that failed is an answer with a reason. Arms are
remembered, so that experiments on the same twin share their reference and control.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rca.errors import ExperimentError
from rca.experiments.child_process import ChildEnded, ChildProcess
from rca.experiments.devices import environment

MEMORY_BYTES = 2 * 2**30
"""Address space that a CPU job may take on top of the imported libraries; a tiny training needs a fifth of it."""
TIME_OVER = "the time for experiments was over"
_FIELDS = ("result", "error", "died", "device_bytes")
PATIENCE = 0.5
"""Seconds after the deadline in which the child may show that it still listens; else it is killed."""


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
    died: bool = False
    """Its process ended before it could answer."""
    device_bytes: int = 0
    """Most memory that it held on a GPU."""


class JobDied(ExperimentError):
    """The process of a job ended before it could answer: says nothing about the run."""


def unfinished(said: str, answer: Answer) -> ExperimentError:
    """Return the error of an experiment whose job gave no result; `said` comes before its reason."""
    text = f"{said}: {answer.error}"
    return JobDied(text) if answer.died else ExperimentError(text)


@dataclass
class Workbench:
    """A child process that answers tasks, two at a time."""

    device: str = "cpu"
    workers: int = 2
    known: dict[str, Answer] = field(default_factory=dict)
    notify: Callable[[int, int], None] | None = None
    """Told how many of the tasks asked for are done, and how many there are."""
    command: Sequence[str] = (sys.executable, "-m", "rca.experiments.child")
    """Starts the child."""
    _child: ChildProcess | None = None
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
            if time.monotonic() >= deadline:
                self._cancel(open_)
                _answer_all(answers, [*open_.values(), *(task.key for task in waiting)], TIME_OVER)
                break
            try:
                while waiting and len(open_) < self.workers:
                    open_[self._post(waiting[0])] = waiting[0].key
                    waiting.pop(0)
                documents = self._started().exchange(deadline)
            except ChildEnded as error:
                # One that never got ready will not do so the next time; one that ended takes its two jobs along.
                dead = self._child is None or not self._child.ready
                lost = [*open_.values(), *(task.key for task in waiting)] if dead else list(open_.values())
                _answer_all(answers, lost, str(error), died=True)
                self._end(patience=PATIENCE / 5)
                open_ = {}
                if dead:
                    break
                continue
            for document in documents:
                key = open_.pop(document["id"], "")
                if key:
                    answer = Answer(**{name: document[name] for name in _FIELDS if name in document})
                    answers[key] = answer
                    if not answer.error:
                        self.known[key] = answer
        return [answers[task.key] for task in tasks]

    def warm_up(self) -> None:
        """Start the child without waiting for it: its imports take seconds. Why it cannot start is told by `run`."""
        try:
            self._started()
        except ChildEnded:
            return

    def close(self) -> None:
        """End the child process and everything that it started."""
        self._end(patience=0.5)

    def _end(self, *, patience: float) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end(patience=patience)

    def _cancel(self, open_: Mapping[int, str]) -> None:
        """Have open jobs ended and keep the child for the next call, if it answers at once."""
        if self._child is None or not open_:
            return
        left = set(open_)
        self._child.post({"cancel": sorted(left)})
        if not self._child.ready:
            return  # still importing: it will find both the tasks and that they are no longer wanted
        until = time.monotonic() + PATIENCE
        try:
            while left and time.monotonic() < until:
                left -= {document["id"] for document in self._child.exchange(until)}
        except ChildEnded:
            pass
        if left:
            self._end(patience=PATIENCE / 5)

    def _post(self, task: Task) -> int:
        child = self._started()
        self._next += 1
        child.post(
            {
                "id": self._next,
                "task": task.kind,
                "payload": task.payload,
                "family": task.family,
                "device": self.device,
                "memory_bytes": task.memory_bytes if self.device == "cpu" else 0,
                "cpu_seconds": task.cpu_seconds,
                "wall_seconds": 5 * task.cpu_seconds + 20,
            }
        )
        return self._next

    def _started(self) -> ChildProcess:
        if self._child is None:
            self._child = ChildProcess(self.command, environment=_environment(self.device))
        return self._child


def _answer_all(answers: dict[str, Answer], keys: Iterable[str], error: str, *, died: bool = False) -> None:
    answers.update({key: Answer(error=error, died=died) for key in keys})


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
        "PYTHONHASHSEED": "0",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        **environment(device),
    }

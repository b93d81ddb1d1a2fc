"""What the user supplies in place of the twin's own model or data, and how it reaches the child.

    rca analyze RUN_DIR --twin my_twin.py:build      a model of the user's own
    rca analyze RUN_DIR --data samples.jsonl         samples of the run instead of synthetic ones

Nothing here loads torch, and nothing of the user's program runs in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rca.errors import UsageError
from rca.experiments.workbench import Answer, Task, Workbench

USER = "user"
"""Family of a model that the user's own function builds."""


def program(named: str) -> str:
    """Return `FILE.py:FUNCTION` with the whole path of the file. Raises UsageError when it cannot be that."""
    file, colon, function = named.rpartition(":")
    if not colon or not file.endswith(".py") or not function.isidentifier():
        raise UsageError(f"--twin {named!r}: write FILE.py:FUNCTION, such as my_twin.py:build")
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"--twin {named!r}: there is no file {file}")
    return f"{path.resolve()}:{function}"


class SuppliedBench(Workbench):
    """A view of a workbench whose trainings get what the user supplied."""

    def __init__(self, bench: Workbench, supplied: Mapping[str, Any]) -> None:
        super().__init__(device=bench.device)
        self.bench, self.supplied = bench, dict(supplied)

    def run(self, tasks: Sequence[Task], *, deadline: float) -> list[Answer]:
        """Return one answer a task; see `Workbench.run`."""
        return self.bench.run([self._with(task) for task in tasks], deadline=deadline)

    def _with(self, task: Task) -> Task:
        if task.kind != "train":
            return task
        payload = {**task.payload, "supplied": self.supplied}
        return Task(task.kind, payload, task.cpu_seconds, task.memory_bytes, task.family)


def maker(supplied: Mapping[str, Any] | None) -> Callable[..., Any] | None:
    """Return what makes a training from what was supplied, or None for the twin's own. For the child: loads torch."""
    if not supplied:
        return None
    if supplied.get("program"):
        from rca.experiments.twin.user import maker_of

        return maker_of(supplied)
    from rca.experiments.twin.train import training_of

    return lambda config, seed, *, device: training_of(config, seed, device=device, data=_samples(supplied))


def _samples(supplied: Mapping[str, Any]) -> Callable[..., Any]:
    from rca.experiments.twin.sample_stream import SampleStream
    from rca.experiments.twin.samples import load

    loaded = load(Path(supplied["data"]))
    return lambda config, seed: SampleStream(config, seed, loaded)

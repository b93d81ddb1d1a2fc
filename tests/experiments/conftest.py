"""A workbench for the tests that need the real child process, and one that only pretends to train."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from rca.experiments.twin.config import TwinConfig
from rca.experiments.workbench import Answer, Task, Workbench


@pytest.fixture(scope="session")
def bench() -> Iterator[Workbench]:
    """A real child process, shared by the session: its start costs several seconds."""
    made = Workbench()
    yield made
    made.close()


@pytest.fixture(scope="session")
def torch() -> Any:
    """Torch on one thread."""
    import torch

    torch.set_num_threads(1)
    return torch


@dataclass
class PretendBench:
    """Answers training tasks from a function of the twin's settings and the seed: the loss at the end, or a curve."""

    loss: Callable[[TwinConfig, int], float | list[float]]
    device: str = "cpu"
    asked: list[TwinConfig] = field(default_factory=list)

    def run(self, tasks: Sequence[Task], *, deadline: float) -> list[Answer]:
        """Return one answer a task."""
        return [self._answer(task) for task in tasks]

    def _answer(self, task: Task) -> Answer:
        config = TwinConfig.model_validate(task.payload["config"])
        self.asked.append(config)
        found = self.loss(config, task.payload["seed"])
        end = found[-1] if isinstance(found, list) else found
        losses = found if isinstance(found, list) else _falling(config.chance, found)
        result = {
            "seed": task.payload["seed"],
            "eval_loss": end,
            "chance": config.chance,
            "losses": losses,
            "scales": [],
            "skipped": [],
            "dropped": 0,
            "parameters": 1000,
            "curve_hash": repr(losses),
        }
        return Answer(result)


def _falling(start: float, end: float) -> list[float]:
    """A curve that goes straight to its level, as training does before it stays on a plateau."""
    if not math.isfinite(end):
        return [start] * 20 + [math.nan] * 40
    return [start + (end - start) * min(1.0, step / 15) for step in range(60)]


@pytest.fixture
def soon() -> float:
    """A deadline that no test reaches."""
    return time.monotonic() + 600

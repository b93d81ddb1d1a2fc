"""What the states of progress bars tell: how far training is, what it was to do, and how fast it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from rca.ingest.training_metrics.bars import Bar
from rca.ingest.training_metrics.step_counter import StepCounter

_MOST = 1_000_000
"""States that are remembered."""

_State = tuple[int | None, int]
"""Epoch, where the bar names one, and what is done of the total."""


class BarStates:
    """Follows the bars of one source; the steps they count go to the counter of the source."""

    def __init__(self, counter: StepCounter) -> None:
        self._counter = counter
        self._total: int | None = None
        """What the bar without a description counts to."""
        self._last: tuple[str, int, _State] | None = None
        """Name, total and state of the training bar that was drawn last."""
        self.marks: list[tuple[int, int]] = []
        """Dicts of metrics seen before a state, and the steps that were done (see `logged_steps`)."""
        self.described = False
        """Whether a training bar with a description was drawn."""

    def placed(self, drawn: Bar) -> Bar:
        """Return the bar as one of training or not.

        Without a description, what counts to another number than the training bar is the evaluation inside it.
        """
        if drawn.kind != "train" or drawn.description:
            return drawn
        if self._total is None or (self._last is not None and self._last[2][1] >= self._last[1]):
            self._total = drawn.total
        return drawn if drawn.total == self._total else drawn._replace(kind="eval")

    def step(self, drawn: Bar, dicts: int) -> int | None:
        """Return the step of a state of a training bar; None where the state before was drawn again.

        `dicts` is the number of dicts of metrics that were printed before.
        """
        key = drawn.name, drawn.total, (drawn.epoch, drawn.done)
        if key == self._last:
            return None
        if drawn.epoch is not None and self._counter.first_epoch is None:
            self._counter.first_epoch = drawn.epoch
        if drawn.step is None:
            return self._counted(drawn, [key[2]], dicts)[0]
        self._followed(drawn, key[2], drawn.step)
        return drawn.step

    def steps(
        self, drawn: Bar, counters: Mapping[str, npt.NDArray[np.int64]], dicts: int
    ) -> tuple[list[int], list[int]]:
        """Return which of many states of a training bar are new, and their steps."""
        done = counters["done"].tolist()
        epochs: list[int | None] = counters["epoch"].tolist() if "epoch" in counters else [None] * len(done)
        states = list(zip(epochs, done, strict=True))
        before = self._last[2] if self._last is not None and self._last[:2] == (drawn.name, drawn.total) else None
        new = [row for row, (one, other) in enumerate(pairwise([before, *states])) if one != other]
        return new, self._counted(drawn, [states[row] for row in new], dicts) if new else []

    def _counted(self, drawn: Bar, states: Sequence[_State], dicts: int) -> list[int]:
        """Return the steps of states of one bar, and remember what they say about the plan."""
        counter = self._counter
        if drawn.epoch is not None:
            steps = [counter.in_epoch(epoch or 0, done, drawn.total) for epoch, done in states]
            counter.length = drawn.total
        else:
            steps = [done for _, done in states]
            counter.total = drawn.total
            self.marks += [(dicts, step) for step in steps[: max(0, _MOST - len(self.marks))]]
        self._followed(drawn, states[-1], steps[-1])
        return steps

    def _followed(self, drawn: Bar, state: _State, step: int) -> None:
        counter = self._counter
        self._last = drawn.name, drawn.total, state
        counter.last_step = step
        counter.steps_seen = True
        counter.epochs = drawn.epochs or counter.epochs
        self.described |= bool(drawn.description)

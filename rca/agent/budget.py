"""Time for experiments: what is left, and what an experiment is expected to take on this machine."""

from __future__ import annotations

import math
from collections.abc import Callable

from rca.rules.schema import ExperimentRule

START_S = 6.0
"""Import of torch and transformers in the child, once: 5 s of computing on a slow core, and its start."""
USUAL_S = 10.0
"""Seconds of computing with which the usual speed counts against what was seen."""
ENDING_S, ENDING_SHARE = 1.0, 0.05
"""Kept back for the end of the child and the judgement, and the largest share of the budget that this may be."""


class Budget:
    """A clock that runs out.

    `cost` of an experiment is in seconds of computing; how long that takes here is learnt from the experiments that
    ran. It only decides what still fits at the end, never what comes first, so that with enough time the same run has
    the same diagnosis on every machine.
    """

    def __init__(self, seconds: float, *, limit: float | None, clock: Callable[[], float]) -> None:
        self._clock, self._limit = clock, limit
        self._start = clock()
        self._until = self._start + seconds
        self._ending = min(ENDING_S, ENDING_SHARE * seconds) if math.isfinite(seconds) else 0.0
        self._seen_s = self._seen_cost = 0.0
        self._ran = 0

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._start

    @property
    def left(self) -> float:
        """Seconds left for experiments."""
        return self._until - self._ending - self._clock()

    @property
    def over(self) -> bool:
        """Whether nothing can be started any more."""
        return self.left <= 0

    def expected(self, rule: ExperimentRule) -> float:
        """Wall seconds that an experiment will probably take here, the start of the child among them."""
        ratio = (USUAL_S + self._seen_s) / (USUAL_S + self._seen_cost)
        return ratio * rule.cost + (0.0 if self._ran else START_S)

    @property
    def untouched(self) -> bool:
        """Whether no experiment ran yet."""
        return self._ran == 0

    def fits(self, rule: ExperimentRule) -> bool:
        """Whether an experiment will probably end in time."""
        return not self.over and self.expected(rule) <= self.left

    def allowed(self) -> float:
        """Seconds that an experiment gets: all that is left, unless there is a limit for each. A job that hangs has a
        limit of its own, so that a slow machine does not change the outcome while there is time."""
        return max(0.0, self.left if self._limit is None else min(self.left, self._limit))

    def saw(self, rule: ExperimentRule, seconds: float) -> None:
        """Learn from what an experiment took."""
        self._seen_s += seconds if self._ran else max(0.0, seconds - START_S)
        self._seen_cost += rule.cost
        self._ran += 1

"""What the agent would have done with outcomes that were recorded before: no child, no clock, no chance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rca.agent.choice import Order
from rca.agent.loop import Investigation, investigate
from rca.diagnosis import Experiment, ExperimentVerdict, Hypothesis
from rca.experiments.interface import RunProfile
from rca.experiments.symptoms import WORDS
from rca.rules.schema import ExperimentRule

Recorded = Mapping[str, tuple[ExperimentVerdict, float]]
"""Experiment -> its verdict on the run, and the seconds that it took."""


def replay(
    hypotheses: Sequence[Hypothesis],
    rules: Mapping[str, ExperimentRule],
    recorded: Recorded,
    *,
    order: Order = "information",
    profile: RunProfile | None = None,
    budget_s: float = math.inf,
) -> Investigation:
    """Return the investigation that `order` leads to when every experiment ends as it was recorded.

    Only recorded experiments are available; `seconds` of the result is the sum of what the chosen ones took. Without a
    `profile` every experiment can speak about the run.
    """
    free: dict[str, object] = {"needs": (), "loop": None} if profile is None else {"needs": ()}
    known = {name: rule.model_copy(update=free) for name, rule in rules.items() if name in recorded}
    recording = _Recording(recorded)
    return investigate(
        hypotheses,
        known,
        profile or RunProfile(symptoms=WORDS),
        recording,
        budget_s=budget_s,
        order=order,
        clock=recording.now,
    )


class _Recording:
    """An experimenter that remembers, and whose clock stands still in between."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded, self._seconds = recorded, 0.0

    def now(self) -> float:
        return self._seconds

    def __call__(self, rule: ExperimentRule, *, seconds: float, **_run: object) -> Experiment:
        verdict, took = self._recorded[rule.id]
        if took > seconds:
            verdict, took = "not_testable", seconds
        self._seconds += took
        return Experiment(
            id=rule.id,
            title=rule.title,
            question=rule.question,
            tests=rule.confirms,
            prediction=rule.says,
            verdict=verdict,
            reason="As recorded.",
            seconds=round(took, 2),
        )

"""What a check is: a measurement in the child process, and a judgement of its figures in this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rca.diagnosis import ExperimentVerdict
from rca.errors import ExperimentError
from rca.experiments.interface import Material, RunProfile
from rca.rules.schema import ExperimentRule

Found = Mapping[str, Any]
"""JSON-able result of a measurement."""


class Outcome(NamedTuple):
    """A verdict, why, and the figures behind it."""

    verdict: ExperimentVerdict
    reason: str
    scope: str = ""
    """What was looked at, and what this check cannot see."""
    details: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Asked:
    """One question to a check: the rule, the run, its files, and the way to have something measured."""

    rule: ExperimentRule
    profile: RunProfile
    material: Material
    measure: Callable[[Mapping[str, Any]], Found]
    """Measures with the given settings in the child process. Raises ExperimentError when that did not finish."""

    def view(self, views: Mapping[str, Callable[[Asked, Found], Outcome]]) -> Callable[[Asked, Found], Outcome]:
        """Return the judgement that the rule's `metric` names. Raises ExperimentError for an unknown name."""
        if self.rule.metric not in views:
            raise ExperimentError(
                f"check {self.rule.probe} has no metric `{self.rule.metric}`, only {', '.join(views)}"
            )
        return views[self.rule.metric]


class Check(NamedTuple):
    """One named check."""

    judge: Callable[[Asked], Outcome]
    """Runs in this process; loads nothing heavy."""
    measure: Callable[[Mapping[str, Any]], Found]
    """Runs in the child process."""

"""An experiment by a named check: what a mechanism would do at the run's sizes, against what the run did."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

from rca.diagnosis import Experiment, ExperimentVerdict
from rca.errors import ExperimentError
from rca.experiments.interface import NOTHING, Material, RunProfile
from rca.experiments.memory.question import GIB, question_of
from rca.experiments.twin.config import DECODERS, twin_of
from rca.experiments.twin.report import change_words
from rca.experiments.workbench import Task, Workbench
from rca.rules.schema import ExperimentRule

CLOSE = 2.0
"""Predicted and observed growth of memory agree when neither is more than twice the other."""
FLAT = 1.3
"""Growth of the time per token that is none."""


class _Outcome(NamedTuple):
    verdict: ExperimentVerdict
    reason: str
    scope: str = ""
    details: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ProbeExperiment:
    """One rule whose check runs in the child."""

    rule: ExperimentRule
    profile: RunProfile
    bench: Workbench
    until: float
    material: Material = NOTHING

    def carry_out(self) -> Experiment:
        """Run the check and judge; every way to end is a verdict."""
        started = time.perf_counter()
        checks = {"kept_bytes": self._kept_bytes, "token_cost": self._token_cost}
        rule = self.rule
        try:
            if rule.probe not in checks:
                raise ExperimentError(f"there is no check `{rule.probe}`; there are {', '.join(checks)}")
            outcome = checks[rule.probe]()
        except ExperimentError as error:
            outcome = _Outcome("not_testable", f"Not tested: {error}.")
        return Experiment(
            id=rule.id,
            title=rule.title,
            question=rule.question,
            tests=rule.confirms,
            prediction=rule.says,
            change=change_words(rule),
            verdict=outcome.verdict,
            reason=outcome.reason,
            scope=outcome.scope,
            details=outcome.details,
            seconds=round(time.perf_counter() - started, 2),
        )

    def _ask(self, settings: dict[str, Any]) -> dict[str, float]:
        task = Task("probe", {"name": self.rule.probe, "settings": settings}, family=self.profile.family or "")
        answer = self.bench.run([task], deadline=self.until)[0]
        if answer.error:
            raise ExperimentError(f"the check did not finish: {answer.error}")
        return {str(name): float(value) for name, value in answer.result.items()}

    def _kept_bytes(self) -> _Outcome:
        """Growth of device memory: that of a kept graph, of kept outputs, or of neither?"""
        observed = self.profile.growth_gib_per_step
        if not observed or observed <= 0:
            raise ExperimentError("the run recorded no growth of device memory per step")
        found = self._ask({"question": question_of(self.profile).model_dump(mode="json")})
        growth = {name: value / GIB for name, value in found.items()}
        details = (
            ("observed growth a step", f"{observed:.3g} GiB"),
            *((f"growth when each step keeps its {name}", f"{value:.3g} GiB") for name, value in growth.items()),
        )
        alike = [name for name, value in growth.items() if value > 0 and 1 / CLOSE <= observed / value <= CLOSE]
        said = (
            f"The run grew by {observed:.3g} GiB a step; keeping the graph of each step would leave "
            f"{growth['graph']:.3g} GiB, keeping the outputs {growth['outputs']:.3g} GiB."
        )
        scope = "bytes that a step leaves behind at the run's sizes, traced without data"
        if alike:
            return _Outcome("confirmed", f"{said} The growth is that of kept {alike[0]}.", scope, details)
        return _Outcome("inconclusive", f"{said} Neither is what was seen.", scope, details)

    def _token_cost(self) -> _Outcome:
        """Growth of the time per token: that of a prefix computed anew, or of one kept?"""
        observed = self.profile.token_growth
        if observed is None:
            raise ExperimentError("the run recorded no time per token over the length")
        if self.profile.use_cache is True:
            raise ExperimentError("the run's own configuration has the cache on")
        twin = twin_of(self.profile)
        if twin.config.family not in DECODERS:
            raise ExperimentError(f"{twin.config.family} does not generate token by token")
        found = self._ask({"twin": twin.config.model_dump(mode="json")})
        said = (
            f"Over a prefix four times as long the next token of the twin takes {found['without']:.1f} times the "
            f"arithmetic without the cache and {found['with']:.2f} times with it; the run's tokens took "
            f"{observed:.1f} times as long."
        )
        scope = f"arithmetic of one token, counted on a tiny {twin.config.family}; no times were measured"
        details = (
            ("growth over a prefix four times as long, without the cache", f"{found['without']:.2f}"),
            ("growth with the cache", f"{found['with']:.2f}"),
            ("growth in the run", f"{observed:.2f}"),
        )
        if observed <= FLAT:
            return _Outcome("refuted", f"{said} That is flat: the prefix was not computed anew.", scope, details)
        if math.sqrt(found["without"] * found["with"]) <= observed:
            return _Outcome("confirmed", f"{said} That is the growth of a prefix computed anew.", scope, details)
        return _Outcome("inconclusive", f"{said} That lies between the two.", scope, details)

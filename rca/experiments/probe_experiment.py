"""An experiment by a named check: what each step would leave behind, against what the run left behind."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rca.diagnosis import Experiment, ExperimentVerdict
from rca.errors import ExperimentError
from rca.experiments.capacity import GIB, question_of
from rca.experiments.interface import RunProfile
from rca.experiments.workbench import Task, Workbench
from rca.rules.schema import ExperimentRule

CLOSE = 2.0
"""Predicted and observed growth agree when neither is more than twice the other."""


@dataclass(frozen=True)
class ProbeExperiment:
    """One rule whose check runs at the run's sizes."""

    rule: ExperimentRule
    profile: RunProfile
    bench: Workbench
    until: float

    def carry_out(self) -> Experiment:
        """Run the check and judge; every way to end is a verdict."""
        started = time.perf_counter()
        verdict: ExperimentVerdict = "not_testable"
        details: tuple[tuple[str, str], ...] = ()
        try:
            verdict, reason, details = self._growth()
        except ExperimentError as error:
            reason = f"Not tested: {error}."
        rule = self.rule
        return Experiment(
            id=rule.id,
            title=rule.title,
            question=rule.question,
            tests=rule.confirms,
            prediction=rule.says,
            change=", ".join(f"{name} = {value}" for name, value in rule.change.items()),
            verdict=verdict,
            reason=reason,
            scope="bytes that a step leaves behind at the run's sizes, traced without data" if details else "",
            details=details,
            seconds=round(time.perf_counter() - started, 2),
        )

    def _growth(self) -> tuple[ExperimentVerdict, str, tuple[tuple[str, str], ...]]:
        observed = self.profile.growth_gib_per_step
        if not observed or observed <= 0:
            raise ExperimentError("the run recorded no growth of device memory per step")
        payload = {"name": self.rule.probe, "settings": {"question": question_of(self.profile).model_dump(mode="json")}}
        answer = self.bench.run([Task("probe", payload)], deadline=self.until)[0]
        if answer.error:
            raise ExperimentError(f"the check did not finish: {answer.error}")
        growth = {name: value / GIB for name, value in answer.result.items()}
        details = (
            ("observed growth a step", f"{observed:.3g} GiB"),
            *((f"growth when each step keeps its {name}", f"{value:.3g} GiB") for name, value in growth.items()),
        )
        alike = [name for name, value in growth.items() if value > 0 and 1 / CLOSE <= observed / value <= CLOSE]
        said = (
            f"The run grew by {observed:.3g} GiB a step; keeping the graph of each step would leave "
            f"{growth['graph']:.3g} GiB, keeping the outputs {growth['outputs']:.3g} GiB."
        )
        if alike:
            return "confirmed", f"{said} The growth is that of a kept {alike[0].rstrip('s')}.", details
        return "inconclusive", f"{said} Neither is what was seen.", details

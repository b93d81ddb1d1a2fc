"""An experiment by a named check: what a mechanism would do at the run's sizes, or what the run's own files say."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rca.diagnosis import Experiment
from rca.errors import ExperimentError
from rca.experiments.checks.check import Asked, Found, Outcome
from rca.experiments.checks.files import left
from rca.experiments.checks.probes import CHECKS
from rca.experiments.entry import entry
from rca.experiments.interface import NOTHING, Material, RunProfile
from rca.experiments.workbench import JobDied, Task, Workbench, unfinished
from rca.rules.schema import ExperimentRule

CPU_SECONDS = 60.0
"""CPU time that one measurement may take; reading is bounded by bytes well below that."""
LONGEST = 600
"""Characters of a sentence or a figure."""
_NEEDS = {
    "weights": "the run left no weight files",
    "tokenizer": "the run left no tokenizer (tokenizer.json, vocab.json or vocab.txt)",
    "model": "the run left no config.json of a model",
    "samples": "the run left no samples (train.jsonl, batch.npz, ...); --data names a file or folder with them",
    "splits": "the run left no samples of both training and held-out split; --data names a folder with both",
}


@dataclass(frozen=True)
class ProbeExperiment:
    """One rule whose check measures in the child."""

    rule: ExperimentRule
    profile: RunProfile
    bench: Workbench
    until: float
    material: Material = NOTHING

    def carry_out(self) -> Experiment:
        """Run the check and judge; every way to end is a verdict."""
        started = time.perf_counter()
        rule = self.rule
        try:
            if rule.probe is None or rule.probe not in CHECKS:
                raise ExperimentError(f"there is no check `{rule.probe}`; there are {', '.join(CHECKS)}")
            lacking = sorted(set(rule.needs) - left(self.material)) if rule.needs else []
            if lacking:
                raise ExperimentError(_lacking(lacking[0], self.material))
            asked = Asked(rule, self.profile, self.material, self._measure)
            outcome = CHECKS[rule.probe].judge(asked)
        except ExperimentError as error:
            outcome = Outcome("error" if isinstance(error, JobDied) else "not_testable", f"Not tested: {error}.")
        return entry(
            rule,
            verdict=outcome.verdict,
            reason=_plain(outcome.reason),
            scope=_plain(outcome.scope),
            details=tuple((_plain(label), _plain(value)) for label, value in outcome.details),
            seconds=round(time.perf_counter() - started, 2),
        )

    def _measure(self, settings: Mapping[str, Any]) -> Found:
        task = Task(
            "probe",
            {"name": self.rule.probe, "settings": dict(settings)},
            cpu_seconds=CPU_SECONDS,
            family=self.profile.family or "",
        )
        answer = self.bench.run([task], deadline=self.until)[0]
        if answer.error:
            raise unfinished("the check did not finish", answer)
        found: Found = answer.result
        return found


def _lacking(need: str, material: Material) -> str:
    if material.elsewhere:
        return f"checks of files need a folder of this machine, and the run lies at {material.elsewhere}; copy it here"
    return _NEEDS[need]


def _plain(text: str) -> str:
    """Names in the run's files may hold anything: no control characters, nothing that is no text, no end."""
    kept = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * LONGEST])
    return kept if len(kept) <= LONGEST else f"{kept[:LONGEST]} ..."

"""Faults x experiments -> verdicts: what every experiment says about runs whose cause is known.

One row a run and experiment, and one a run with what its rules and its profile are, from which other orders of the same
experiments can be replayed. Only experiments that speak about what the run shows are carried out, of those the ones
that concern the true cause or a cause that the rules hold possible.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rca.collect.evidence import hypotheses
from rca.diagnosis import Hypothesis
from rca.errors import ExperimentError
from rca.experiments.interface import Material, RunProfile
from rca.experiments.profile import run_profile
from rca.experiments.run import experimenter
from rca.experiments.workbench import Workbench
from rca.facts.registry import CATALOGUE
from rca.lab.faults import Variant
from rca.lab.measure import Row, run_of
from rca.lab.scenarios import Scenario, profile_of
from rca.lab.speaking import speaks
from rca.notes import Notes
from rca.observation import Readers, observed, ranking_of
from rca.rules.load import Knowledge, load
from rca.rules.schema import ExperimentRule

SECONDS = 300.0
"""Wall time for one experiment, on a machine that may be busy."""
POSSIBLE = 0.01
"""Probability by rules alone from which the experiments on a cause are measured."""


def on_run(made: Variant, folder: Path, names: Sequence[str], done: frozenset[str]) -> list[Row]:
    """Carry out the experiments on one run of a fault; `done` names those that are not wanted any more."""
    place = run_of(made, folder)
    knowledge = load()
    profile, candidates = seen(place / "run", knowledge)
    fault = made.fault
    truth = {"run": made.name, "fault": fault.name, "cause": fault.cause, "also_ok": list(fault.also_ok),
             "severity": made.severity, "architecture": made.architecture, "seed": made.seed}  # fmt: skip
    accepted = (fault.cause, *fault.also_ok)
    wanted = [name for name in _concerned(knowledge, profile, candidates, accepted, names) if name not in done]
    material = Material(folder=place / "run")
    return [
        {**truth, "profile": profile.model_dump(mode="json", exclude_none=True),
         "hypotheses": [item.model_dump(mode="json", include=_KEPT) for item in candidates]},
        *(_row(truth, knowledge.experiments[name], profile, material) for name in wanted),
    ]  # fmt: skip


def on_scenario(scenario: Scenario, names: Sequence[str], done: frozenset[str]) -> list[Row]:
    """Carry out the experiments on a training that stands for a run: no run directory, only its profile."""
    truth = {"run": scenario.name, "fault": scenario.name, "cause": scenario.cause, "also_ok": []}
    bench = Workbench()
    try:
        profile = profile_of(scenario, bench, until=time.monotonic() + SECONDS)
    except ExperimentError as error:
        return [{**truth, "error": str(error)}]
    finally:
        bench.close()
    rules = load().experiments
    wanted = [rule for name, rule in sorted(rules.items()) if (not names or name in names) and name not in done]
    return [
        {**truth, "profile": profile.model_dump(mode="json", exclude_none=True), "hypotheses": []},
        *(_row(truth, rule, profile, Material()) for rule in wanted if rule.kind == "twin" and speaks(rule, profile)),
    ]


_KEPT = {"cause", "title", "probability", "status", "experiments", "explained_by"}


def seen(run: Path, knowledge: Knowledge) -> tuple[RunProfile, tuple[Hypothesis, ...]]:
    """Return the profile of a run and what the rules alone make of it."""
    found = observed(run, knowledge, Notes(strict=True), baseline=None, readers=Readers(), tell=lambda *_: None)
    ranking = ranking_of(found.view, knowledge)
    events, facts = found.reading.events, found.facts
    candidates = hypotheses(ranking.candidates, events, facts, context=lambda _places: {}, meanings=CATALOGUE)
    return run_profile(events, facts), tuple(candidates)


def _concerned(
    knowledge: Knowledge,
    profile: RunProfile,
    candidates: Sequence[Hypothesis],
    accepted: Sequence[str],
    names: Sequence[str],
) -> list[str]:
    possible = {item.cause for item in candidates if item.probability >= POSSIBLE} | set(accepted)
    listed = {name for cause in possible & set(knowledge.causes) for name in knowledge.causes[cause].experiments}
    return [
        name
        for name, rule in sorted(knowledge.experiments.items())
        if (name in names if names else rule.predicts and (name in listed or possible & set(rule.confirms)))
        and speaks(rule, profile)
    ]


def _row(truth: Mapping[str, Any], rule: ExperimentRule, profile: RunProfile, material: Material) -> Row:
    found = experimenter(rule, profile=profile, device="cpu", seconds=SECONDS, material=material)
    effect = found.effect
    return {
        **{key: truth[key] for key in ("run", "fault", "cause")},
        "experiment": rule.id,
        "verdict": found.verdict,
        "gap": None if effect is None else effect.value,
        "recovered": None if effect is None else effect.recovered,
        "reason": found.reason[:300],
        "seconds": found.seconds,
    }

"""Whether an experiment has anything to say about a run."""

from __future__ import annotations

from rca.experiments.interface import RunProfile
from rca.rules.schema import ExperimentRule


def speaks(rule: ExperimentRule, profile: RunProfile) -> bool:
    """Whether a run shows what an experiment is about."""
    if any(getattr(profile, name, None) == value for name, value in rule.excludes.items()):
        return False
    if rule.symptoms:
        return bool(set(rule.symptoms) & set(profile.symptoms))
    return rule.kind != "twin" or bool(profile.symptoms)

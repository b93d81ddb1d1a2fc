"""The entry of the diagnosis for one experiment: what its rule says of it, and what came of it."""

from __future__ import annotations

from typing import Any

from rca.diagnosis import Experiment
from rca.rules.schema import ExperimentRule


def entry(rule: ExperimentRule, **found: Any) -> Experiment:
    """Return the entry: question and prediction from the rule, verdict, reason and figures from `found`."""
    return Experiment(
        id=rule.id,
        title=rule.title,
        question=rule.question,
        tests=rule.confirms,
        prediction=rule.says,
        change=change_words(rule),
        **found,
    )


def change_words(rule: ExperimentRule) -> str:
    """Return the one difference between the arms in words."""
    if rule.treatment:
        return rule.treatment
    parts = []
    for name, value in rule.change.items():
        factor = isinstance(value, str) and value[:1] == "x"
        parts.append(f"{name.replace('_', ' ')} {'times ' + str(value)[1:] if factor else f'= {value}'}")
    return ", ".join(parts)

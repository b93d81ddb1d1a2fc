"""The named checks, and the way into them for the child process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rca.experiments.checks import (
    batch_bisection,
    repeat_determinism,
    split_overlap,
    token_cost,
    tokenizer_round_trip,
    weight_files,
)
from rca.experiments.checks import kept_bytes as kept
from rca.experiments.checks.check import Check, Found
from rca.experiments.checks.kept_bytes import kept_bytes

__all__ = ["CHECKS", "kept_bytes", "run_probe"]

CHECKS: Mapping[str, Check] = {
    "kept_bytes": kept.CHECK,
    "token_cost": token_cost.CHECK,
    "batch_bisection": batch_bisection.CHECK,
    "repeat_determinism": repeat_determinism.CHECK,
    "tokenizer_round_trip": tokenizer_round_trip.CHECK,
    "split_overlap": split_overlap.CHECK,
    "weight_files": weight_files.CHECK,
}
"""Name as in `probe:` of an experiment file -> check. A new check is one file and one line here."""


def run_probe(name: str, settings: Mapping[str, Any]) -> Found:
    """Measure for one named check, in the child process. Raises ValueError for an unknown name."""
    if name not in CHECKS:
        raise ValueError(f"unknown probe {name!r}; known are {', '.join(sorted(CHECKS))}")
    return CHECKS[name].measure(settings)

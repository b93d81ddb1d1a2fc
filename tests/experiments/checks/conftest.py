"""Checks on small real folders: measured in this process, through JSON as between the processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rca.experiments.checks.check import Asked, Outcome
from rca.experiments.checks.probes import CHECKS, run_probe
from rca.experiments.interface import Material, RunProfile
from rca.rules.load import load

RULES = load().experiments

Judge = Callable[..., Outcome]


@pytest.fixture
def judged(tmp_path: Path) -> Judge:
    """Carry out one experiment on the folder of the test."""

    def carry_out(name: str, *, data: Path | None = None, **profile: Any) -> Outcome:
        rule = RULES[name]

        def measure(settings: Mapping[str, Any]) -> Any:
            sent = json.loads(json.dumps({"name": rule.probe, "settings": settings}))
            return json.loads(json.dumps(run_probe(sent["name"], sent["settings"])))

        asked = Asked(rule, RunProfile(**profile), Material(folder=tmp_path, data=data), measure)
        return CHECKS[rule.probe or ""].judge(asked)

    return carry_out


def write_lines(file: Path, records: list[Any]) -> None:
    """Write JSON lines."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")

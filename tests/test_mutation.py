"""Every rule that is taken away, and every exchange of causes, must make a case fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from rca.mutation import Unheld, observed_cases, unheld_exchanges, unheld_rules
from rca.rules.load import Knowledge, load

CAUSE = """
id: acme.{name}
title: The {name}
sentence: The {name} went.
summary: It went.
prior: 0.01
evidence:
  - {{id: sign, log: "{name} lost", weight: 5, required: true, says: It was lost.}}
  - {{id: beside, log: "{name} gone", weight: 0.2, says: It is gone.}}
contradicts:
  - {{id: back, log: "{name} is back", weight: 5, says: It came back.}}
"""
CASES = """
fires:
  - {{name: lost, log: "{name} lost"}}
silent:
  - {{name: back, why: it came back, log: "{name} lost, {name} is back"}}
"""


@pytest.fixture
def knowledge(tmp_path: Path) -> Knowledge:
    for name in ("lease", "gauge"):
        (tmp_path / f"{name}.yaml").write_text(CAUSE.format(name=name), encoding="utf-8")
        (tmp_path / f"{name}.cases.yaml").write_text(CASES.format(name=name), encoding="utf-8")
    return load([tmp_path], builtin=False)


def _unheld(knowledge: Knowledge) -> list[Unheld]:
    cases = observed_cases(knowledge)
    assert len(cases) == 4
    return list(unheld_rules(knowledge.causes["acme.lease"], knowledge, cases))


def test_what_no_case_misses_is_listed(knowledge: Knowledge) -> None:
    assert _unheld(knowledge) == [Unheld("acme.lease", "evidence beside")]


def test_a_case_that_shows_a_rule_holds_it(knowledge: Knowledge) -> None:
    file = knowledge.files["acme.lease"].with_name("lease.cases.yaml")
    shown = '  - {name: gone, log: "lease lost, lease gone", shows: [beside]}\nsilent:'
    file.write_text(file.read_text(encoding="utf-8").replace("silent:", shown), encoding="utf-8")
    cases = observed_cases(knowledge)
    assert list(unheld_rules(knowledge.causes["acme.lease"], knowledge, cases)) == []


def test_causes_that_exchange_their_files_are_noticed(knowledge: Knowledge) -> None:
    cases = observed_cases(knowledge)
    assert [item for cause in knowledge.causes.values() for item in unheld_exchanges(cause, knowledge, cases)] == []


@pytest.mark.slow
def test_no_rule_of_the_shipped_causes_can_go_unnoticed() -> None:
    shipped = load()
    domains = {"code", "data", "memory", "numerics", "optimization", "weights"}
    held = [cause for cause in shipped.causes.values() if cause.domain in domains]
    cases = observed_cases(shipped, held)
    assert [item for cause in held for item in unheld_rules(cause, shipped, cases)] == []
    assert [item for cause in held for item in unheld_exchanges(cause, shipped, cases)] == []

"""The knowledge base that is shipped: consistent, and every case comes out as it says."""

from __future__ import annotations

import json
import math

import pytest

from rca.facts.registry import CATALOGUE
from rca.hypotheses.score import FIRST_FAILURE_BONUS, UNKNOWN_BASELINE, UNKNOWN_PRIOR
from rca.ingest.names import canonical_config
from rca.pipeline import judge
from rca.rules.check import check
from rca.rules.check_conditions import Words, check_condition
from rca.rules.load import load, walk
from rca.rules.testing import run_cases

KNOWLEDGE = load()
TO_BEAT = math.log(UNKNOWN_PRIOR) + UNKNOWN_BASELINE - FIRST_FAILURE_BONUS


def test_nothing_is_wrong_across_the_files() -> None:
    found = check(KNOWLEDGE, facts=CATALOGUE, common_name=canonical_config, to_beat=TO_BEAT)
    assert [str(finding) for finding in found] == []


@pytest.mark.parametrize("cause", sorted(KNOWLEDGE.causes))
def test_cases(cause: str) -> None:
    results = run_cases(KNOWLEDGE, [KNOWLEDGE.causes[cause]], lambda run: judge(run, KNOWLEDGE))
    assert [result for result in results if not result.passed] == []


def test_what_is_asked_for_uses_names_that_exist() -> None:
    words = Words(KNOWLEDGE, CATALOGUE)
    asked = [part for record in KNOWLEDGE.records.values() for part in (record.wanted, record.present)]
    inside = [condition for part in asked if part is not None for condition in walk(part)]
    assert [problem for condition in inside for problem in check_condition(condition, words)] == []


def test_stable_causes_are_those_that_come_first_on_a_recorded_run(root) -> None:
    recorded = {json.loads(file.read_text())["cause"] for file in (root / "sample_logs").glob("*/truth.json")}
    assert {cause.id for cause in KNOWLEDGE.causes.values() if cause.maturity == "stable"} == recorded


def test_priors_are_shares_of_all_failed_jobs() -> None:
    total = sum(cause.prior for cause in KNOWLEDGE.causes.values())
    assert 0.5 < total < 1.5


def test_every_cause_says_how_to_fix_and_how_to_settle_it() -> None:
    lacking = [
        cause.id for cause in KNOWLEDGE.causes.values() if cause.id != "none" and not (cause.fixes and cause.decide)
    ]
    assert lacking == []

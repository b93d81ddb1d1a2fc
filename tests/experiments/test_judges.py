from __future__ import annotations

import math

import numpy as np
import pytest

from rca.experiments.judges import (
    FEWEST,
    HIGHEST,
    MOST,
    binary_factor,
    gap,
    harmful,
    judge,
    judge_binary,
    lost_gap,
)


def sequential(control: list[float], treatment: list[float]) -> str:
    for count in range(FEWEST, MOST + 1):
        decision = judge(control[:count], treatment[:count]).decision
        if decision != "undecided":
            return decision
    return "undecided"


def test_lost_gap_runs_from_the_reference_to_chance_and_is_clipped() -> None:
    assert lost_gap(2.0, 2.0, 5.5) == 0
    assert lost_gap(5.5, 2.0, 5.5) == 1
    assert lost_gap(50.0, 2.0, 5.5) == HIGHEST
    assert lost_gap(math.nan, 2.0, 5.5) == HIGHEST
    assert lost_gap(0.1, 2.0, 5.5) == -0.2


def test_a_clear_recovery_is_confirmed_with_three_pairs() -> None:
    judgement = judge([0.9, 1.0, 0.95], [0.05, 0.0, 0.1])
    assert judgement.decision == "confirmed"
    assert judgement.gap.low < judgement.gap.mean < judgement.gap.high
    assert judgement.gap.recovered == pytest.approx(0.947, abs=0.01)


def test_a_partial_recovery_only_mitigates() -> None:
    assert judge([1.0, 1.0, 1.0], [0.6, 0.62, 0.58]).decision == "mitigates"


def test_no_recovery_is_refuted_and_noise_is_undecided() -> None:
    assert judge([0.5, 0.52, 0.48], [0.5, 0.52, 0.5]).decision == "refuted"
    assert judge([0.2, 0.9, 0.5], [0.4, 0.3, 0.2]).decision == "undecided"


def test_a_treatment_that_makes_it_worse_is_harmful() -> None:
    assert harmful(gap([0.0, 0.02, 0.01], [0.5, 0.55, 0.6]))
    assert not harmful(gap([0.0, 0.02, 0.01], [0.02, 0.0, 0.01]))


def test_false_confirmations_are_rare_on_null_pairs() -> None:
    draws = np.random.default_rng(0)
    confirmed = refuted = 0
    for _ in range(2000):
        spread = draws.choice([0.03, 0.1, 0.25])
        level = draws.uniform(0.3, 1.0)
        control = (level + spread * draws.normal(size=MOST)).tolist()
        treatment = (level + spread * draws.normal(size=MOST)).tolist()
        decision = sequential(control, treatment)
        confirmed += decision == "confirmed"
        refuted += decision == "refuted"
    assert confirmed / 2000 < 0.01
    assert refuted / 2000 > 0.5


def test_real_effects_are_found_and_rarely_refuted() -> None:
    draws = np.random.default_rng(1)
    decisions = []
    for _ in range(1000):
        control = (0.9 + 0.1 * draws.normal(size=MOST)).tolist()
        treatment = (0.1 + 0.1 * draws.normal(size=MOST)).tolist()
        decisions.append(sequential(control, treatment))
    assert decisions.count("confirmed") > 950
    assert decisions.count("refuted") < 10


def test_binary_factor_has_its_exact_values() -> None:
    assert binary_factor(3, 0, 3) == pytest.approx(8.75)
    assert binary_factor(4, 0, 5) == pytest.approx(12.83, abs=0.01)
    assert binary_factor(3, 3, 3) < 1


def test_a_yes_or_no_symptom_needs_three_of_three_and_learning() -> None:
    found = gap([0.1, 0.1, 0.1], [0.0, 0.0, 0.0])
    yes, no = [True] * 3, [False] * 3
    assert judge_binary(yes, no, found, [0.0, 0.1, 0.0]).decision == "confirmed"
    assert judge_binary(yes, no, found, [0.9, 0.9, 0.9]).decision == "mitigates"
    assert judge_binary(yes, yes, found, [0.0, 0.1, 0.0]).decision == "refuted"
    assert judge_binary([True, True, False], no, found, [0.0, 0.0, 0.0]).decision == "undecided"


def test_false_confirmations_of_the_binary_rule_are_rare() -> None:
    draws = np.random.default_rng(2)
    found = gap([0.1] * 3, [0.1] * 3)
    wrong = 0
    for _ in range(2000):
        rate = draws.uniform()
        control = (draws.random(3) < rate).tolist()
        treatment = (draws.random(3) < rate).tolist()
        wrong += judge_binary(control, treatment, found, [0.0] * 3).decision == "confirmed"
    assert wrong / 2000 < 0.02

from __future__ import annotations

import itertools
import math

import pytest

from rca.experiments.judges import (
    HIGHEST,
    MOST,
    MOST_NOISY,
    binary_factor,
    gap,
    harmful,
    judge,
    judge_binary,
    lost_gap,
    reproduced,
    two_groups,
)


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


def test_the_interval_is_that_of_students_t() -> None:
    found = gap([0.9, 0.7, 0.8, 0.9], [0.1, 0.2, 0.1, 0.3])
    width = math.sqrt((2 * 0.01 + sum((d - found.mean) ** 2 for d in (0.8, 0.5, 0.7, 0.6))) / 5 / 4)
    assert found.mean - found.low == pytest.approx(2.570582 * width, rel=1e-6)
    assert found.high - found.mean == pytest.approx(2.570582 * width, rel=1e-6)


def test_seeds_in_two_groups_are_counted_as_well() -> None:
    assert two_groups([0.0, 0.05, 1.0])
    assert not two_groups([0.0, 0.2, 0.4, 0.6])
    # A mean of two thirds looks certain to the margin rule alone, with one seed of six that decides it.
    one_of_three = judge([1.0, 1.0, 0.02, 1.0], [0.0, 0.02, 0.0, 0.03])
    assert one_of_three.gap.above_margin > 0.975
    assert one_of_three.decision == "undecided"
    assert one_of_three.most == MOST_NOISY
    assert one_of_three.factor == pytest.approx(5.04)
    four_more = judge([1.0, 1.0, 0.02, 1.0, 1.0, 0.9, 1.0], [0.0, 0.02, 0.0, 0.03, 0.0, 0.01, 0.0])
    assert four_more.decision == "confirmed"


def test_further_seeds_of_the_control_can_show_the_groups() -> None:
    control, treatment = [1.0, 1.0, 0.98], [0.0, 0.02, 0.0]
    assert judge(control, treatment).decision == "confirmed"
    assert judge(control, treatment, further=[0.99, 1.0, 1.0]).decision == "confirmed"
    assert judge(control, treatment, further=[0.0, 1.0, 0.01]).decision == "undecided"


def test_a_gap_that_only_lacks_certainty_may_take_more_seeds() -> None:
    assert judge([0.5, 0.3, 0.55], [0.2, 0.25, 0.1]).most == MOST_NOISY
    assert judge([0.5, 0.52, 0.48], [0.4, 0.42, 0.38]).most == MOST


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


def test_a_symptom_that_some_seeds_show_needs_more_of_them() -> None:
    found, lost = gap([0.1] * 4, [0.0] * 4), [0.0] * 4
    assert judge_binary([True] * 4, [False] * 4, found, lost, further=[True, False]).decision == "confirmed"
    assert judge_binary([True] * 3, [False] * 3, found, lost[:3], further=[False]).decision == "undecided"
    assert judge_binary([True] * 3 + [False], [False] * 4, found, lost).decision == "undecided"
    assert judge_binary([True] * 8, [True] * 3 + [False] * 5, found, lost).decision == "mitigates"


@pytest.mark.parametrize(("rate", "wrong"), [(0.95, 0.003), (0.9, 0.015), (0.8, 0.073)])
def test_a_control_is_rarely_missed_and_the_exact_rates_are_those_stated(rate: float, wrong: float) -> None:
    missed = taken = 0.0
    for flags in itertools.product([True, False], repeat=MOST):
        end = next(count for count in range(1, MOST + 1) if reproduced(flags[:count]) is not None)
        shows = sum(flags)
        if not reproduced(flags[:end]):
            missed += rate**shows * (1 - rate) ** (MOST - shows)
        else:
            taken += (1 - rate) ** shows * rate ** (MOST - shows)
    assert missed == pytest.approx(taken)
    assert missed == pytest.approx(wrong, abs=0.0005)


def test_a_clear_control_takes_two_seeds() -> None:
    assert reproduced([True]) is None
    assert reproduced([True, True]) is True
    assert reproduced([False, False]) is False
    assert reproduced([True, False]) is None
    assert reproduced([True, False, True]) is None
    assert reproduced([True, False, True, False, True]) is True

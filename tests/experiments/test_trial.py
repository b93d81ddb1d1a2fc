"""The sequential test: how it proceeds, and how often it errs."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest

from rca.experiments.judges import FEWEST, MOST, MOST_NOISY
from rca.experiments.trial import Seen, Trial, carry_through, look
from tests.benchmarks.verdict_error_rates import EFFECTS, NOTHING, RESULT, shares


def run(control: Sequence[float], treatment: Sequence[float], *, time_for: int = MOST_NOISY) -> tuple[Trial, list[int]]:
    asked = []

    def first(values: Sequence[float], count: int) -> Seen:
        return Seen(values[:count], [value >= 1.3 for value in values[:count]])

    def pairs(count: int) -> tuple[Seen, Seen] | None:
        asked.append(count)
        return (first(control, count), first(treatment, count)) if count <= time_for else None

    return carry_through(pairs, lambda count: first(control, count) if count <= time_for else None), asked


def test_a_clear_effect_is_confirmed_after_three_pairs_and_a_look_at_three_more_seeds_of_the_control() -> None:
    trial, asked = run([0.9, 1.0, 0.95, 0.97, 0.9, 0.92, 1.0, 0.9], [0.05, 0.0, 0.1, 0.0, 0.1, 0.0, 0.0, 0.0])
    assert trial.judgement.decision == "confirmed"
    assert asked == [FEWEST]
    assert trial.null is not None
    assert abs(trial.null.mean) < 0.1


def test_no_effect_is_refuted_after_three_pairs_without_a_null_check() -> None:
    trial, asked = run([0.5] * 8, [0.5, 0.52, 0.48, 0.5, 0.5, 0.5, 0.5, 0.5])
    assert trial.judgement.decision == "refuted"
    assert (asked, trial.null) == ([FEWEST], None)


def test_a_control_that_differs_from_itself_makes_it_invalid() -> None:
    trial, _ = run([1.0, 1.0, 0.98, 0.0, 0.02, 0.0, 0.0, 0.0], [0.0] * 8)
    assert trial.judgement.decision == "invalid"
    assert trial.null is not None
    assert trial.null.low > 0


def test_a_control_in_two_groups_takes_more_pairs() -> None:
    trial, asked = run([1.0, 1.0, 0.98, 1.0, 0.02, 1.0, 1.0, 1.0], [0.0] * 8)
    assert trial.judgement.decision == "confirmed"
    assert asked == [3, 4]
    control = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]
    trial, asked = run(control, [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0])
    assert trial.judgement.decision in {"undecided", "refuted"}


def test_noise_ends_undecided_after_all_pairs() -> None:
    trial, asked = run([0.5, 0.3, 0.4, 0.3, 0.5, 0.4, 0.3, 0.5], [0.25, 0.35, 0.2, 0.3, 0.35, 0.2, 0.3, 0.4])
    assert trial.judgement.decision == "undecided"
    assert asked[-1] == MOST
    assert not trial.out_of_time


def test_the_end_of_the_time_is_told_and_never_confirms() -> None:
    trial, _ = run([1.0] * 8, [0.0] * 8, time_for=3)
    assert trial.judgement.decision == "undecided"
    assert trial.out_of_time
    trial, asked = run([0.5, 0.3, 0.45] * 3, [0.25, 0.35, 0.2] * 3, time_for=3)
    assert trial.judgement.decision == "undecided"
    assert trial.out_of_time
    assert asked == [3, 4]


def test_a_failure_that_leaves_learning_intact_is_counted() -> None:
    def seen(failed: bool) -> Seen:
        return Seen([0.05] * 6, [failed] * 6)

    def first(arm: Seen, count: int) -> Seen:
        return Seen(arm.lost[:count], arm.failed[:count])

    trial = carry_through(
        lambda count: (first(seen(True), count), first(seen(False), count)), lambda count: first(seen(True), count)
    )
    assert trial.judgement.decision == "confirmed"
    assert trial.judgement.factor == pytest.approx(8.75)


def test_a_failure_is_counted_where_the_runs_own_settings_lose_as_much_learning() -> None:
    def seen(failed: bool) -> Seen:
        return Seen([0.6] * 6, [failed] * 6)

    control, treatment = seen(True), seen(False)
    nothing_left = Seen((), ())
    assert look(control, treatment, attainable=0.6, further=nothing_left).decision == "confirmed"
    assert look(control, control, attainable=0.6, further=nothing_left).decision == "refuted"
    assert look(control, treatment, attainable=0.0, further=nothing_left).decision == "refuted"


def test_the_rules_rarely_err() -> None:
    random = np.random.default_rng(7)
    # About 3,500 trials: enough to see rates of a few percent; the committed table has seventy times as many.
    null = [shares(shape, trials=60, random=random) for shapes in NOTHING.values() for shape in shapes.values()]
    real = [shares(shape, trials=60, random=random) for shapes in EFFECTS.values() for shape in shapes.values()]
    assert np.mean([row.get("confirmed", 0.0) for row in null]) <= 0.01
    assert np.mean([row.get("refuted", 0.0) for row in real]) <= 0.03
    assert np.mean([row.get("confirmed", 0.0) for row in real]) >= 0.65


def test_the_stated_rates_are_those_of_the_simulation() -> None:
    table = json.loads(RESULT.read_text(encoding="utf-8"))
    assert table["trials of each shape"] >= 2000
    assert table["false confirmations"]["all shapes"]["mean"] <= 0.01
    assert table["false refutations"]["all shapes"]["mean"] <= 0.03
    shape, name = NOTHING["two groups"]["70% fail, height 1"], "70% fail, height 1"
    again = shares(shape, trials=600, random=np.random.default_rng(3))
    stored = table["shapes"]["nothing to find"]["two groups"][name]
    assert abs(again["refuted"] - stored["refuted"]) < 0.1
    assert abs(again["pairs"] - stored["pairs"]) < 0.5

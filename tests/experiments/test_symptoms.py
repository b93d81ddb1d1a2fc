from __future__ import annotations

import math

from rca.experiments.symptoms import Evaluation, climbs, longest_run, reproduces, shown

CHANCE = 5.55


def falling(end: float, *, steps: int = 60, over: int = 15) -> list[float | None]:
    return [CHANCE + (end - CHANCE) * min(1.0, step / over) for step in range(steps)]


def words(losses: list[float | None], *, lost: float = 1.3, skipped: tuple[int, ...] = ()) -> frozenset[str]:
    return shown(losses, lost_gap=lost, chance=CHANCE, skipped=skipped)


def test_kinds_of_nan_are_told_apart() -> None:
    nan = [math.nan]
    good = falling(2.0)
    assert words(nan * 60) == {"nan_at_start"}
    assert words([*good[:30], *nan * 30]) == {"nan_abrupt"}
    assert words([*good[:30], 9.0, 40.0, 300.0, *nan * 27]) == {"nan_after_growth"}
    assert words([*good[:30], *nan, *good[31:]], lost=0.0) == {"nan_isolated"}


def test_kinds_of_finite_failure_are_told_apart() -> None:
    assert words([5.55, 6.5, *[12.0] * 58]) == {"diverged"}
    assert words(falling(3.5), lost=0.5) == {"plateau"}
    assert words([5.55 + 0.01 * (step % 3) for step in range(60)], lost=1.0) == {"stuck"}
    assert words(falling(3.8, over=60), lost=0.5) == {"slow"}
    assert words(falling(2.0), lost=0.0) == frozenset()


def test_ten_skips_in_a_row_are_a_collapse_and_two_are_not() -> None:
    assert "skipping" in words([math.nan] * 60, skipped=(1,) * 60)
    assert "skipping" not in words(falling(2.0), lost=0.0, skipped=(1, 1, *(0,) * 58))
    assert longest_run((1, 1, 0, 1)) == 2


def test_dropped_batches_are_no_failure() -> None:
    curve = falling(2.0)
    curve[20] = None
    assert words(curve, lost=0.0) == frozenset()


def test_a_planted_fault_must_look_like_the_run() -> None:
    assert reproduces(("nan_abrupt",), frozenset({"nan_abrupt"}), planted=True)
    assert not reproduces(("nan_abrupt",), frozenset({"nan_at_start", "skipping"}), planted=True)
    assert not reproduces(("nan_after_growth",), frozenset({"nan_abrupt"}), planted=True)


def test_the_runs_own_settings_may_fail_in_another_way() -> None:
    assert reproduces(("nan_after_growth",), frozenset({"plateau"}), planted=False)
    assert reproduces(("nan_abrupt",), frozenset({"diverged"}), planted=False)
    assert not reproduces(("nan_abrupt",), frozenset({"plateau"}), planted=False)
    assert not reproduces(("stuck",), frozenset({"slow"}), planted=False)
    assert not reproduces(("diverged",), frozenset(), planted=False)


def beside(losses: list[float | None], *, lost: float = 0.8, **seen: object) -> frozenset[str]:
    evaluation = Evaluation(**{"loss": 4.5, "best": 2.0, **seen})  # type: ignore[arg-type]
    return shown(losses, lost_gap=lost, chance=CHANCE, evaluation=evaluation)


def test_an_unseen_loss_that_rises_again_is_overfitting() -> None:
    rises = (5.0, 4.0, 3.5, 3.6, 4.0, 4.5)
    assert {"overfits", "suspiciously_low"} <= beside(falling(0.1), watched=rises)
    assert "eval_worse_than_train" in beside(falling(0.1), watched=(5.0, 4.8, 4.6, 4.5, 4.5, 4.5))
    assert "overfits" not in beside(falling(0.1), watched=rises[:4])
    assert beside(falling(2.0), lost=0.0, watched=rises) == frozenset()


def test_gradients_that_vanish_or_add_up_have_words() -> None:
    stuck = [CHANCE] * 60
    assert "vanishing" in beside(stuck, layer_ratio=1e-6)
    assert "vanishing" not in beside(stuck, layer_ratio=0.1)
    assert "tiny_gradients" in beside(stuck, norms=(1e-9,) * 60)
    climbing = tuple(float(step) for step in range(1, 61))
    assert "norm_climbs" in beside(falling(3.5), norms=climbing)
    assert "norm_climbs" not in beside(stuck, norms=climbing)


def test_what_began_far_above_chance_is_not_explained_by_what_breaks_later() -> None:
    high = [4 * CHANCE, *[9 * CHANCE] * 20, *[50 * CHANCE] * 3, *[math.nan] * 36]
    assert words(high) == {"nan_after_growth", "starts_high"}
    assert words(falling(2.0), lost=0.0) == frozenset()
    run = ("nan_after_growth", "starts_high")
    assert not reproduces(run, frozenset({"nan_after_growth"}), planted=True)
    assert reproduces(run, frozenset({"nan_after_growth", "starts_high"}), planted=True)
    assert reproduces(run, frozenset({"plateau"}), planted=False)


def test_only_a_steady_rise_from_the_start_climbs() -> None:
    assert climbs([float(step) for step in range(1, 61)])
    assert climbs([2.0 ** (step / 2) for step in range(20)] + [math.nan] * 40)
    assert not climbs([1.0] * 40 + [float(step) for step in range(1, 21)])
    assert not climbs([5000.0, 3000.0] * 15 + [math.inf] * 30)
    assert not climbs([1.0, 2.0, 3.0])

from __future__ import annotations

import math

import numpy as np
import pytest

from ..tables import Run, around, decay, joined


def values(loss: object, **curves: object) -> dict[str, object]:
    return Run().curves({"loss": loss, **curves}).values()  # type: ignore[dict-item]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("noise", [0.01, 0.1, 0.4])
def test_healthy_runs_do_not_diverge(seed: int, noise: float) -> None:
    assert values(decay(150, noise=noise, seed=seed))["loss.diverged"] is False


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("count", [6, 9, 15, 40])
def test_noise_around_a_level_does_not_diverge(seed: int, count: int) -> None:
    assert values(around(1.2, count, noise=0.08, seed=seed))["loss.diverged"] is False


def test_climb_that_stays() -> None:
    found = values(joined(decay(100), np.geomspace(2, 30, 20), around(30, 30)))
    assert found["loss.diverged"] is True
    assert 100 <= found["loss.diverged_step"] <= 108
    assert found["loss.diverged_ratio"] > 10
    assert found["loss.lost_share"] > 1


def test_climb_into_nan() -> None:
    found = values(joined(decay(100), [2.5, 4.0, 9.0, 31.0], [math.nan] * 5))
    assert found["loss.diverged"] is True
    assert found["loss.rising_at_end"] is True


def test_few_points_that_explode() -> None:
    found = values([2.3, 60.0, 4000.0, math.nan, math.nan])
    assert found["loss.diverged"] is True


def test_rise_from_the_start() -> None:
    assert values(joined(np.geomspace(6.9, 90, 60)))["loss.diverged"] is True


def test_warm_up_growth_is_no_divergence() -> None:
    assert values(joined(np.linspace(10.8, 12.0, 15), decay(150, 12.0, 5.0)))["loss.diverged"] is False
    assert values(np.linspace(10.8, 12.0, 15))["loss.diverged"] is False


def test_spike_that_recovers_is_no_divergence() -> None:
    loss = decay(200)
    loss[100:106] = [5, 9, 8, 6, 4, 3]
    assert values(loss)["loss.diverged"] is False


def test_saw_tooth_is_no_divergence() -> None:
    tooth = np.tile(np.linspace(2.4, 0.6, 20), 12)
    for cut in range(0, 20, 3):
        assert values(tooth[: len(tooth) - cut])["loss.diverged"] is False


def test_collapse_to_chance_is_a_divergence() -> None:
    assert values(joined(decay(80, 0.69, 0.35, noise=0.01), around(0.69, 60, noise=0.01)))["loss.diverged"] is True


def test_negative_losses_have_no_ratio() -> None:
    found = values(joined(np.linspace(-1, -8, 60), np.linspace(-8, 40, 60)))
    assert found["loss.diverged"] is True
    assert "loss.diverged_ratio" not in found


def test_cut_off_climb() -> None:
    assert values(joined(decay(60), [2.4, 5.1, 12.0]))["loss.rising_at_end"] is True
    assert values(decay(60))["loss.rising_at_end"] is False


def test_a_noisy_climb_is_a_divergence_although_noise_crossed_the_bar_before() -> None:
    noise = np.random.default_rng(3).normal(0, 0.7, 300)
    loss = np.concatenate([np.linspace(3.0, 2.4, 75), np.linspace(2.4, 11.0, 225)]) + noise
    assert Run().curves({"loss": list(loss)}).values()["loss.diverged"] is True


def test_noise_that_ends_on_a_high_note_is_no_divergence() -> None:
    loss = 2.5 + np.random.default_rng(4).exponential(1.5, 300)
    loss[-12:] += 1.0
    assert Run().curves({"loss": list(loss)}).values()["loss.diverged"] is False


def test_a_few_losses_that_grow_without_end_diverged() -> None:
    values = [7, 6, 5.5, 5.2, 5.3, 6.1, 8.8, 12.2, 19.9, 40, 88, 150, 420, 900, 2100]
    assert Run().curves({"loss": values}).values()["loss.diverged"] is True


def test_start_lost_before_the_second_line() -> None:
    found = values(joined([1.7, 4.9, 9.2], around(7.4, 60, noise=0.02)))
    assert found["loss.diverged"] is True
    assert found["loss.diverged_step"] == 1
    assert found["loss.diverged_ratio"] > 4
    assert found["loss.plateau"] is False


def test_one_low_loss_at_the_start_is_no_lost_start() -> None:
    assert values(joined([0.9], around(1.7, 60, noise=0.25)))["loss.diverged"] is False


def test_start_that_forty_later_losses_do_not_reach_again() -> None:
    found = values(joined([2.3, 6.7, 5.9], decay(80, 5.0, 2.7, noise=0.01)))
    assert found["loss.diverged"] is True
    assert values(joined([2.3, 6.7, 5.9], decay(20, 5.0, 2.7, noise=0.01)))["loss.diverged"] is False


def test_first_loss_after_a_resumption_is_no_start() -> None:
    loss = joined([0.03], around(1.6, 60, noise=0.02))
    assert Run().curves({"loss": loss}, start=3050, every=50).values()["loss.diverged"] is False
    assert Run().curves({"loss": loss}, start=50, every=50).values()["loss.diverged"] is True

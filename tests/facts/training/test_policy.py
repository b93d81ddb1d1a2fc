"""Runs that optimise a policy by rewards."""

from __future__ import annotations

import numpy as np
import pytest

from ..tables import Run, around, decay, joined


def climbing(low: float, high: float, count: int) -> list[float]:
    return [float(value) for value in np.geomspace(low, high, count)]


def test_policy_that_ran_away() -> None:
    found = (
        Run()
        .curves(
            {
                "objective/kl": joined(around(0.4, 20), climbing(2, 150, 60)),
                "objective/scores": np.linspace(0.8, -3.0, 80),
                "policy/approxkl_avg": around(2.5, 80),
                "policy/clipfrac_avg": around(0.7, 80),
                "val/clipfrac_avg": around(0.01, 80),
            }
        )
        .values()
    )
    assert found["policy.kl_exploded"] is True
    assert found["policy.reward_fell"] is True
    assert found["policy.update_kl"] == pytest.approx(2.5, rel=0.2)
    assert found["policy.clip_share"] == pytest.approx(0.7, rel=0.2)


def test_policy_that_learns_with_a_loss_around_zero() -> None:
    noise = np.random.default_rng(3).normal(0, 0.01, 120)
    found = (
        Run().curves({"loss": noise, "kl": climbing(0.001, 0.05, 120), "reward": np.linspace(0.3, 0.8, 120)}).values()
    )
    assert found["policy.kl_exploded"] is False
    assert found["policy.reward_fell"] is False
    assert not {"loss.plateau", "loss.improvement"} & found.keys()


def test_rewards_of_a_preference_loss_are_no_policy() -> None:
    found = Run().curves({"loss": decay(60), "rewards/chosen": around(1, 60), "kl": climbing(0.01, 90, 60)}).values()
    assert [name for name in found if name.startswith("policy.")] == ["policy.is_reference"]
    assert found["policy.is_reference"] is False
    assert "loss.plateau" in found


def test_noise_of_a_reward_is_no_fall() -> None:
    found = Run().curves({"reward": around(0.5, 60, noise=0.2), "kl": around(0.02, 60)}).values()
    assert found["policy.reward_fell"] is False


@pytest.mark.parametrize(("rewards", "same"), [([0.0] * 30, True), ([0.0] * 20 + [0.01] * 10, False)])
def test_a_policy_that_is_its_reference(rewards: list[float], same: bool) -> None:
    found = Run().curves({"loss": [0.6931] * 30, "rewards/chosen": [0.0] * 30, "rewards/rejected": rewards}).values()
    assert found["policy.is_reference"] is same


def test_the_loss_of_a_rewarded_policy_may_grow() -> None:
    found = Run().curves({"loss": climbing(1, 90, 60), "rollout/ep_rew_mean": climbing(1, 200, 60)}).values()
    assert not {"loss.diverged", "loss.rising_at_end"} & found.keys()

"""Schedule, loss and evaluation of a run become settings and symptoms of its twin."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rca.events import EventTable
from rca.experiments.profile import run_profile
from rca.experiments.twin.config import twin_of
from tests.experiments.test_profile import events, facts


def test_the_logged_schedule_gives_peak_warm_up_and_decay() -> None:
    rates = [1e-4 * step for step in range(1, 11)] + [1e-3 * (1 - step / 40) for step in range(1, 41)]
    profile = run_profile(events({}, {"learning_rate": rates}), {})
    assert profile.learning_rate_peak == pytest.approx(1e-3)
    assert profile.lr_warmup_share == pytest.approx(8 / 49)
    assert profile.lr_decay == pytest.approx(0.0, abs=1e-9)
    assert profile.lr_half_share == pytest.approx(21 / 49)


def test_a_rate_that_stays_has_no_shape() -> None:
    profile = run_profile(events({}, {"learning_rate": [3e-4] * 50}), facts(loss__nan_step=40))
    assert (profile.lr_warmup_share, profile.lr_decay, profile.steps_at_rate) == (0.0, None, 40)
    assert not profile.late
    later = run_profile(events({}, {"learning_rate": [3e-4] * 1500}), facts(loss__nan_step=1400))
    assert later.late


def test_the_time_at_the_rate_counts_from_the_end_of_the_warm_up() -> None:
    rates = [3e-4 * min(1.0, step / 1000) for step in range(1200)]
    profile = run_profile(events({}, {"learning_rate": rates}), facts(loss__nan_step=1150))
    assert profile.steps_at_rate == pytest.approx(1150 - 899)
    assert not profile.late


@pytest.mark.parametrize(
    ("config", "field", "value"),
    [
        ({"initial_scale_power": 16}, "loss_scale_initial", None),
        ({"loss_scale_initial": 16}, "loss_scale_initial", 65536.0),
        ({"loss_scale_initial": 1e300}, "loss_scale_initial", None),
        ({"loss_scale_window": 1000}, "loss_scale_window", 1000),
        ({"loss_reduction": "sum"}, "loss_reduction", "sum"),
        ({"reduction": "none"}, "loss_reduction", None),
        ({"hidden_act": "gelu_new"}, "activation", "gelu_new"),
        ({"rms_norm_eps": 1e-6}, "norm_eps", 1e-6),
        ({"layer_norm_eps": -1}, "norm_eps", None),
        ({"ignore_index": -100}, "ignore_index", -100),
    ],
)
def test_settings_of_loss_and_norms(config: dict[str, Any], field: str, value: Any) -> None:
    assert getattr(run_profile(events(config), {}), field) == value


def test_symptoms_beside_the_curve() -> None:
    table = events({})
    assert run_profile(table, facts(eval__overfit=True, eval__gap=2.0)).symptoms == ("overfits",)
    assert run_profile(table, facts(eval__gap=0.8)).symptoms == ("eval_worse_than_train",)
    assert run_profile(table, facts(eval__gap=0.1)).symptoms == ()
    assert run_profile(table, facts(loss__suspiciously_low=True)).symptoms == ("suspiciously_low",)
    assert run_profile(table, facts(grad_norm__tiny=True)).symptoms == ("tiny_gradients",)
    assert run_profile(table, facts(grad_norm__layers_vanish=True)).symptoms == ("vanishing",)


def test_a_high_start_counts_only_beside_a_symptom() -> None:
    table = events({})
    assert run_profile(table, facts(loss__first_too_high=True)).symptoms == ()
    both = facts(loss__first_too_high=True, loss__nan_step=40)
    assert run_profile(table, both).symptoms == ("nan_abrupt", "starts_high")


def test_a_norm_that_climbs_from_the_start_is_seen_in_its_series() -> None:
    climbing = events({}, {"grad_norm": [1.0 + step / 4 for step in range(60)]})
    assert run_profile(climbing, {}).symptoms == ("norm_climbs",)
    flat = events({}, {"grad_norm": [1.0 + 0.1 * math.sin(step) for step in range(60)]})
    assert run_profile(flat, {}).symptoms == ()


def test_what_never_learnt_gets_the_whole_schedule_and_what_broke_gets_its_rate() -> None:
    rates = [1e-3 * step / 20 for step in range(1, 21)] + [1e-3 * 0.5 ** (step / 4) for step in range(1, 81)]
    table = events({"model_type": "gpt2", "hidden_size": 64, "optimizer": "adamw"}, {"learning_rate": rates})
    stuck = twin_of(run_profile(table, facts(loss__plateau=True, run__step_at_failure=99))).config
    assert (stuck.lr, stuck.warmup) == (pytest.approx(1e-3), pytest.approx(60 * 17 / 99, abs=1))
    assert stuck.decay < 1e-3
    assert 0 < stuck.decay_steps < 30
    broken = twin_of(run_profile(table, facts(loss__nan_step=24))).config
    assert broken.lr == pytest.approx(rates[24])
    assert broken.decay == 1


@pytest.mark.parametrize("values", [[math.nan] * 5, [0.0, 0.0], [1e-3], [-1.0, -2.0], [math.inf, 1.0]])
def test_useless_rates_say_nothing(values: list[float]) -> None:
    profile = run_profile(events({}, {"learning_rate": values}), {})
    assert profile.lr_decay is None
    assert profile.learning_rate_peak is None


def test_an_empty_table_has_no_schedule() -> None:
    assert run_profile(EventTable.from_parts([]), {}).lr_warmup_share is None

from __future__ import annotations

import math

import numpy as np

from ..tables import Run, around, decay, joined

NAN = math.nan


def test_healthy_loss_has_no_nan_step() -> None:
    values = Run().curves({"loss": decay(), "grad_norm": around(1.0)}).values()
    assert "loss.nan_step" not in values
    assert values["loss.nan_share"] == 0
    assert values["loss.masked_nan"] is False


def test_nan_after_climb_is_gradual() -> None:
    loss = joined(decay(100), np.geomspace(2, 400, 12), [NAN] * 20)
    norm = joined(around(1.0, 100), np.geomspace(1, 900, 12), [NAN] * 20)
    values = Run().curves({"loss": loss, "grad_norm": norm}).values()
    assert values["loss.nan_step"] == 112
    assert values["loss.nan_persists"] is True
    assert values["loss.abrupt_nan"] is False
    assert values["loss.growth_before_nan"] > 20
    assert values["grad_norm.rising"] is True


def test_nan_out_of_the_blue_is_abrupt() -> None:
    loss = joined(decay(100), [NAN] * 20)
    values = Run().curves({"loss": loss, "grad_norm": joined(around(1.0, 100), [NAN] * 20)}, every=10).values()
    assert values["loss.nan_step"] == 1000
    assert values["loss.abrupt_nan"] is True
    assert values["loss.nan_at_start"] is False
    assert values["loss.nan_isolated"] is False


def test_iterations_that_the_loop_counted() -> None:
    found = Run().curves({"loss": decay(20), "nan_steps": [0.0] * 15 + [1.0] * 5}).values()
    assert found["loss.nan_iterations"] == 1
    assert Run().curves({"nan_steps": [0.0] * 20}).values()["loss.nan_iterations"] == 0


def test_infinite_loss_counts_as_nan() -> None:
    values = Run().curves({"loss": joined(decay(50), [math.inf] * 3)}).values()
    assert values["loss.nan_step"] == 50


def test_nan_at_the_start() -> None:
    values = Run().curves({"loss": [NAN] * 10}).values()
    assert values["loss.nan_at_start"] is True
    assert values["loss.nan_step"] == 0
    assert "loss.abrupt_nan" not in values
    assert "loss.first" not in values


def test_finite_losses_are_no_nan_at_the_start() -> None:
    values = Run().curves({"loss": decay(20)}).values()
    assert values["loss.nan_at_start"] is False
    assert "loss.nan_step" not in values
    assert "loss.nan_at_start" not in Run().curves({"accuracy": decay(20)}).values()


def test_isolated_nan() -> None:
    loss = decay(100)
    loss[40] = NAN
    values = Run().curves({"loss": loss}).values()
    assert values["loss.nan_isolated"] is True
    assert values["loss.nan_persists"] is False
    assert values["loss.nan_recurs"] is False


def test_nan_that_returns_every_epoch() -> None:
    loss = decay(200)
    loss[[30, 80, 130, 180]] = NAN
    values = Run().curves({"loss": loss}).values()
    assert values["loss.nan_recurs"] is True
    assert values["loss.nan_period"] == 50


def test_nan_at_the_same_place_of_two_epochs() -> None:
    loss = decay(100)
    loss[[20, 70]] = NAN
    values = Run().curves({"loss": loss, "epoch": np.arange(100) / 50}).values()
    assert values["loss.nan_recurs"] is True


def test_irregular_nans_do_not_recur() -> None:
    loss = decay(200)
    loss[[11, 57, 140]] = NAN
    assert Run().curves({"loss": loss}).values()["loss.nan_recurs"] is False


def test_nan_hidden_as_zero() -> None:
    loss = joined(decay(50), [0.0] * 10)
    values = Run().curves({"loss": loss, "grad_norm": joined(around(1.0, 50), [NAN] * 10)}).values()
    assert values["loss.masked_nan"] is True
    assert values["loss.nan_step"] == 50
    assert values["loss.last"] > 1


def test_single_zeros_beside_zero_norm_are_masked() -> None:
    loss, norm = decay(60), around(1.0, 60)
    loss[[10, 30]] = 0.0
    norm[[10, 30]] = 0.0
    values = Run().curves({"loss": loss, "grad_norm": norm}).values()
    assert values["loss.masked_nan"] is True
    assert values["loss.zero_share"] == 2 / 60
    assert "loss.nan_step" not in values


def test_tiny_losses_with_zeros_are_no_hidden_nan() -> None:
    loss = np.abs(np.random.default_rng(0).normal(0, 1e-4, 60))
    loss[::7] = 0.0
    norm = np.where(loss == 0, 0.0, 0.1)
    assert Run().curves({"loss": loss, "grad_norm": norm}).values()["loss.masked_nan"] is False


def test_one_rank_breaks_first() -> None:
    run = Run().curves({"loss": decay(40)}, source="rank_0.log", rank=0)
    run.curves({"loss": joined(decay(20), [NAN] * 20)}, source="rank_1.log", rank=1)
    values = run.values()
    assert values["loss.nan_rank"] == 1


def test_all_ranks_break_together() -> None:
    run = Run()
    for rank in range(2):
        run.curves({"loss": joined(decay(20), [NAN] * 20)}, source=f"rank_{rank}.log", rank=rank)
    assert "loss.nan_rank" not in run.values()


def test_summary_average_is_no_point_of_the_curve() -> None:
    run = Run().curves({"loss": decay(50)})
    line = run.line("train.log")
    for name, value in (("loss", 99.0), ("train_runtime", 10.0)):
        run.source("train.log").add(kind="metric", name=name, value=value, step=49, line=line)
    assert run.values()["loss.last"] < 3

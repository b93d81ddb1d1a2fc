"""Whether anything improves."""

from __future__ import annotations

import numpy as np

from ..tables import Run, around, decay


def test_a_reward_that_rises_although_the_loss_does_not() -> None:
    found = Run().curves({"loss": list(around(0.7, 100)), "reward/mean": list(np.linspace(0.1, 0.6, 100))}).values()
    assert found["score.improving"] is True
    assert found["run.gained_nothing"] is False


def test_nothing_improves() -> None:
    run = Run().curves({"loss": list(around(0.7, 100, noise=0.01)), "val_f1": [0.31] * 100})
    found = run.values()
    assert found["score.improving"] is False
    assert found["score.constant"] is True
    assert found["run.gained_nothing"] is True


def test_a_loss_that_falls() -> None:
    assert Run().curves({"loss": list(decay())}).values()["run.gained_nothing"] is False


def test_an_excerpt_proves_nothing() -> None:
    assert "run.gained_nothing" not in Run().curves({"loss": list(around(2.0, 60))}, start=80000).values()

from __future__ import annotations

import pytest

from ..tables import Run, around


def test_training_behind_the_end_of_the_schedule() -> None:
    run = (
        Run()
        .curves({"loss": around(2.0, 50)}, every=10, start=1000)
        .config(lr_decay_steps=1000, min_lr=0.0, learning_rate=1e-3)
    )
    found = run.values()
    assert found["lr.past_schedule_share"] == pytest.approx(1.0)
    assert found["lr.floor_ratio"] == 0.0


def test_a_schedule_that_covers_the_run() -> None:
    run = Run().curves({"loss": around(2.0, 50)}, every=10).config(lr_decay_steps=5000, min_lr=1e-4, learning_rate=1e-3)
    found = run.values()
    assert found["lr.past_schedule_share"] == 0.0
    assert found["lr.floor_ratio"] == pytest.approx(0.1)

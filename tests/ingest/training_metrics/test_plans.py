"""How far a run was meant to go, by what its lines say of epochs and of the time left."""

from __future__ import annotations

from typing import Any

import pytest

from rca.ingest.training_metrics.time_left import TimeLeft


def test_bars_of_keras_count_in_the_epoch_above_them(read: Any) -> None:
    rows = "".join(
        f"Epoch {epoch}/3\n100/100 [======================] - 2s 20ms/step - loss: {1 / epoch:.3f} - val_loss: 0.9\n"
        for epoch in (1, 2, 3)
    )
    done = read("train.log", rows + "25/25 [==============================] - 1s 6ms/step - loss: 0.5127\n")
    loss = done.table.metric("loss")
    assert list(loss.step) == [100, 200, 300]
    assert (done.config()["max_steps"], done.config()["epochs"]) == (300, 3)


def test_epoch_and_iteration_in_one_counter(read: Any) -> None:
    text = "".join(
        f"eta: 1:00:00  epoch/iter: {n}/{n * 542}  total_loss: {4 - n / 10:.2f}  lr: 1.0e-3\n" for n in range(9)
    )
    assert list(read("train.log", text).table.metric("loss").step) == [n * 542 for n in range(9)]


@pytest.mark.parametrize(
    ("etas", "planned"),
    [
        ([(0, "1:00:00"), (100, "0:59:00"), (200, "0:58:00")], 6000),
        ([(5800, "2:00"), (5900, "1:00"), (5999, "00:00")], 5999),
        ([(5800, "02:00"), (5900, "01:00"), (5960, "00:30")], 5960),
        ([(0, "2 days, 0:00:00"), (10, "1 day, 23:59:00"), (20, "1 day, 23:58:00")], 28_800),
        ([(0, "1:00"), (10, "2:00"), (20, "3:00")], None),
        ([(0, "1:00:00")], None),
    ],
)
def test_the_time_left_tells_the_plan(etas: list[tuple[int, str]], planned: int | None) -> None:
    left = TimeLeft()
    for step, eta in etas:
        left.note(f"eta: {eta}  iter: {step}  loss: 2.0", step)
    assert left.planned() == planned

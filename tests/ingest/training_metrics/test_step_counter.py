"""One growing step count out of what lines count."""

from __future__ import annotations

import pytest

from rca.ingest.training_metrics.counters import position
from rca.ingest.training_metrics.step_counter import StepCounter


def steps(*lines: str) -> list[int | None]:
    counter = StepCounter()
    return [counter.step(position(line)) for line in lines]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("global_step=10 epoch=2/micro_step=410", {"step": 10, "epoch": 2}),
        ("iteration 10/ 1000 | lm loss", {"step": 10, "total": 1000}),
        ("step 1,234 of 5,000", {"step": 1234, "total": 5000}),
        ("[  500] loss 3.2", {"step": 500}),
        ("3|12|Loss: 1.2", {"epoch": 3, "step": 12}),
        ("s:250 trl:4.5", {"step": 250}),
        ("Epoch [1/90], Step [100/500], Loss: 2.3", {"epoch": 1, "epochs": 90, "step": 100, "total": 500}),
        ("Epoch: [3][ 10/5005] Loss 1", {"epoch": 3, "batch": 10, "length": 5005}),
        ("Epoch(train)  [1][  50/7330]  lr", {"epoch": 1, "batch": 50, "length": 7330}),
        ("Iter(train) [    50/80000]  lr", {"step": 50, "total": 80000}),
        ("Train: 0 [  50/1251 (  4%)]  Loss", {"epoch": 0, "batch": 50, "length": 1251}),
        ("'step': 7, 'loss': 2", {"step": 7}),
        ("epoch 10/15  loss 0.31", {"epoch": 10, "epochs": 15}),
        ("Epoch 10/20 100/500 loss 0.3", {"epoch": 10, "epochs": 20, "batch": 100, "length": 500}),
        ("| epoch   1 |   200/ 2983 batches | lr 5.00", {"epoch": 1, "batch": 200, "length": 2983}),
        ("[3/25][150/790] Loss_D: 0.5", {"epoch": 3, "epochs": 25, "batch": 150, "length": 790}),
        ("5000 5% (0m 7s) 2.71 Ito / Japanese", {"step": 5000}),
        ("1h 2m 7s (- 2m 23s) (5000 6%) 2.86", {"step": 5000}),
        ("epoch 0.35 loss 2", {}),
        ("stepped 3 times, iterator 5", {}),
        ("50 steps/s", {}),
    ],
)
def test_position(line: str, expected: dict[str, int]) -> None:
    place = position(line)
    found = {name: getattr(place, name) for name in ("step", "total", "epoch", "epochs", "batch", "length")}
    assert {name: value for name, value in found.items() if value is not None} == expected
    assert place.own is bool(expected)


@pytest.mark.parametrize(
    ("line", "evaluation"),
    [
        ("val step 3 loss 2", True),
        ("Test: [ 3/10] Loss 2", True),
        ("eval | loss 2", True),
        ("step 3 val_loss 2", False),
        ("| valid | loss 2", True),
        ("Iter(val) [100/500]  loss: 2", True),
        ("Iter(train) [100/500]  loss: 2", False),
    ],
)
def test_evaluation(line: str, evaluation: bool) -> None:
    assert position(line).evaluation is evaluation


def test_epochs_from_zero_and_from_one() -> None:
    assert steps("Epoch: [0][ 5/100] Loss 1", "Epoch: [1][ 5/100] Loss 1") == [5, 105]
    assert steps("Epoch: [1][ 5/100] Loss 1", "Epoch: [2][ 5/100] Loss 1") == [5, 105]


def test_a_resumed_run_goes_on_where_it_was() -> None:
    assert steps("Epoch: [5][ 5/100] Loss 1") == [405]


def test_a_counter_that_restarts_without_a_new_epoch_is_believed() -> None:
    assert steps("step 100 loss 1", "step 50 loss 1") == [100, 50]


def test_plans() -> None:
    counter = StepCounter()
    for line in ("epoch 0 step 10/50", "epoch 1 step 10/50"):
        counter.step(position(line))
    assert counter.planned() is None
    counter.epochs = 3
    assert counter.planned() == 150

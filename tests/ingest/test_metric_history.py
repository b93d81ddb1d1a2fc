from __future__ import annotations

import math
from typing import Any

import pytest


def test_a_trainer_state_gives_its_history_plan_and_position(read: Any) -> None:
    text = (
        '{"global_step": 30, "epoch": 0.5, "max_steps": 60, "num_train_epochs": 1, "train_batch_size": 4, "best":'
        ' null, "log_history": [{"step": 10, "loss": 2.0, "grad_norm": NaN, "learning_rate": 1e-4}, {"step": 20,'
        ' "loss": 0.0, "grad_norm": Infinity}, {"step": 30, "eval_loss": 1.5, "epoch": 0.5}]}'
    )
    found = read("checkpoint-30/trainer_state.json", text)
    assert found.metrics("loss") == [(10, 2.0), (20, 0.0)]
    assert [step for step, _ in found.metrics("grad_norm")] == [10, 20]
    assert math.isnan(found.metrics("grad_norm")[0][1])
    assert found.metrics("eval_loss") == [(30, 1.5)]
    assert found.config()["max_steps"] == 60
    assert found.config()["batch_size"] == 4
    assert found.one("trainer.state").step == 30


@pytest.mark.parametrize(
    ("name", "document", "metric", "expected"),
    [
        ("log.json", [{"step": 1, "loss": 3}, {"step": 2, "loss": 2}], "loss", [(1, 3.0), (2, 2.0)]),
        ("history.json", {"loss": [3, 2], "val_loss": [4, 3]}, "eval_loss", [(0, 4.0), (1, 3.0)]),
        ("history.json", {"epoch": [1, 2], "loss": [3, 2]}, "loss", [(1, 3.0), (2, 2.0)]),
        ("metrics.json", {"1": {"loss": 3.0}, "2": {"loss": 2.0, "val": {"acc": 0.5}}}, "loss", [(1, 3.0), (2, 2.0)]),
        ("all_results.json", {"epoch": 3.0, "eval_loss": 1.25, "eval_runtime": 9.1}, "eval_loss", [(3, 1.25)]),
        ("wandb-summary.json", {"_step": 40, "train": {"loss": 0.5}}, "loss", [(40, 0.5)]),
    ],
)
def test_histories_of_many_shapes(
    read: Any, name: str, document: Any, metric: str, expected: list[tuple[int, float]]
) -> None:
    assert read(name, document).metrics(metric) == expected


def test_a_cut_history_is_skipped_with_the_place(read: Any) -> None:
    found = read("trainer_state.json", '{"log_history": [{"step": 10, "loss": 2.0},')
    assert found.record.status == "skipped"
    assert "not complete JSON (line 1" in found.record.why


def test_settings_are_no_history(read: Any) -> None:
    assert (
        read("args.json", {"learning_rate": 0.1, "max_steps": 9, "betas": [0.9, 0.95]}).config()["learning_rate"] == 0.1
    )

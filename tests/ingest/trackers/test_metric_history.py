from __future__ import annotations

import json
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


def test_the_callback_that_ends_a_run_early(read: Any) -> None:
    callback = {"args": {"early_stopping_patience": 3}, "attributes": {"early_stopping_patience_counter": 3}}
    for held in (callback, [callback]):
        state = {"log_history": [{"loss": 2.0, "step": 10}], "stateful_callbacks": {"EarlyStoppingCallback": held}}
        found = read("trainer_state.json", state)
        assert found.config()["early_stopping_patience"] == 3
        assert found.one("trainer.state").attr("early_stopping_patience_counter") == 3
        assert "3 of a patience of 3" in found.one("run.early_stopped").text
    callback["attributes"]["early_stopping_patience_counter"] = 1
    state = {"log_history": [{"loss": 2.0, "step": 10}], "stateful_callbacks": {"EarlyStoppingCallback": callback}}
    assert not read("trainer_state.json", state).table.named("run.early_stopped")


@pytest.mark.parametrize(
    ("name", "row", "step"),
    [
        ("metrics.json", {"iteration": 20, "total_loss": 2.0, "lr": 0.001, "data_time": 0.01}, 20),
        ("vis_data/20261130_101010.json", {"step": 50, "loss": 2.0, "lr": 0.02, "data_time": 0.01, "memory": 4321}, 50),
        ("trial/result.json", {"training_iteration": 1, "loss": 2.0, "config": {"x": "y" * 3000}}, 1),
    ],
)
def test_one_object_a_line_under_the_name_of_a_document(read: Any, name: str, row: dict[str, Any], step: int) -> None:
    key = "iteration" if "iteration" in row else "step" if "step" in row else "training_iteration"
    rows = [{**row, key: row[key] * (place + 1)} for place in range(4)]
    found = read(name, "\n".join(json.dumps(item) for item in rows) + '\n{"loss": 1.')
    assert found.metrics("loss") == [(step * (place + 1), 2.0) for place in range(4)]


def test_steps_of_trainers_that_call_them_otherwise(read: Any) -> None:
    rows = [{"current_steps": 10 * at, "total_steps": 100, "loss": 2.0, "epoch": 0.1 * at} for at in range(1, 4)]
    found = read("trainer_log.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert [step for step, _ in found.metrics("loss")] == [10, 20, 30]

"""Passes through the data, and runs that end with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

Reported = Callable[[Mapping[str, Any]], dict[str, Any]]


def job(rows: int, steps: int, *, end: str = "Training finished in 0.5 h") -> str:
    head = f"config: lr=1e-5 global_batch_size=32 max_steps=1000 seed=1\nnum_rows={rows}\n"
    return head + "".join(f"step {step} loss {3 - step / 1000}\n" for step in range(10, steps + 1, 10)) + f"{end}\n"


@pytest.mark.parametrize(("rows", "ended"), [(6400, True), (3200, True), (9000, False)])
def test_a_run_that_ends_where_its_data_ends(reported: Reported, rows: int, ended: bool) -> None:
    found = reported({"train.log": job(rows, 200)})
    assert found["run.finished_early"] is True
    assert found["data.passes"] == pytest.approx(6400 / rows)
    assert found["data.ended_with_the_data"] is ended


def test_a_run_that_reached_its_plan(reported: Reported) -> None:
    found = reported({"train.log": job(32000, 1000)})
    assert found["run.finished_early"] is False
    assert "data.ended_with_the_data" not in found


def test_a_run_that_was_stopped_on_purpose(reported: Reported) -> None:
    log = job(6400, 200, end="Epoch 3: early stopping\nTraining finished in 0.5 h")
    assert "run.finished_early" not in reported({"train.log": log})

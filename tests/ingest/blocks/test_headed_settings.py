"""One line of settings behind the word for them."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize("head", ["cfg ", "config: ", "[main] args: ", "2024-05-01 10:00:00,123 INFO train: hparams "])
def test_a_line_of_settings_is_no_line_of_metrics(read: Any, head: str) -> None:
    found = read("train.log", f"{head}batch=128 lr=2e-4 compile.backend=inductor seed=4\nstep 1 loss 3.0 lr 1e-5\n")
    assert found.config()["compile.backend"] == "inductor"
    assert found.config()["learning_rate"] == 2e-4
    assert found.metrics("learning_rate") == [(1, 1e-5)]


@pytest.mark.parametrize("line", ["config loaded from a=b", "args: x=1 y=2", "step 3: loss=2.0 lr=1e-4 norm=1.0"])
def test_other_lines(read: Any, line: str) -> None:
    assert "a" not in read("train.log", f"{line}\n").config()
    assert "loss" not in read("train.log", f"{line}\n").config()

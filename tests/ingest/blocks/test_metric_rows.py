"""Rows of a step, a name and a value."""

from __future__ import annotations

import math
from typing import Any


def test_rows_of_a_small_trainer(read: Any) -> None:
    found = read("log.txt", "0 val 10.9504\n0 hella 0.2463\n0 train 10.955029\n1 train 9.611330\n250 val 6.3012\n")
    assert found.metrics("loss") == [(0, 10.955029), (1, 9.61133)]
    assert found.metrics("eval_loss") == [(0, 10.9504), (250, 6.3012)]
    assert found.metrics("hella") == [(0, 0.2463)]


def test_a_diverged_loss(read: Any) -> None:
    values = [value for _step, value in read("log.txt", "1 train 9.61\n2 train nan\n3 train nan\n").metrics("loss")]
    assert values[0] == 9.61
    assert [math.isnan(value) for value in values[1:]] == [True, True]


def test_sentences_with_numbers(read: Any) -> None:
    assert read("log.txt", "3 train 0.9\nfiles were read\n12 val 0.1\n").metrics("loss") == []


def test_updates_of_marian(read: Any) -> None:
    text = "".join(
        f"[2023-01-01 10:00:0{i}] Ep. 1 : Up. {i}000 : Sen. 64,000 : Cost {8 - i}.12345678 * 400,000 @ 1,234 after "
        f"400,000 : Time 60.12s : 6543.21 words/s : gNorm 1.{i}34\n"
        for i in (1, 2)
    )
    found = read("train.log", text)
    assert found.metrics("loss") == [(1000, 7.12345678), (2000, 6.12345678)]
    assert found.metrics("grad_norm") == [(1000, 1.134), (2000, 1.234)]

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

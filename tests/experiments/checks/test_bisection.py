"""Halving finds exactly the guilty, in the number of forwards that was measured before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from rca.experiments.checks.bisection import bisect, through_twin
from rca.experiments.checks.sample_formats import Samples


@pytest.mark.parametrize(("guilty", "most"), [(0, 1), (1, 25), (2, 49), (5, 115), (20, 400)])
def test_all_guilty_samples_are_found_in_few_forwards(guilty: int, most: int) -> None:
    bad = set(np.random.default_rng(guilty).choice(4096, guilty, replace=False).tolist())
    found = bisect(range(4096), lambda part: bool(bad & set(part)), 4096)
    assert set(found.rows) == bad
    assert found.forwards <= most


def test_a_batch_that_fails_only_as_a_whole_is_told_apart() -> None:
    def fails(part: Sequence[int]) -> bool:
        return {3, 12} <= set(part)

    found = bisect(range(32), fails, 16)
    assert found.rows == ()
    assert found.batches == (0,)


def test_a_sample_that_overflows_in_the_first_layer_is_found() -> None:
    values = np.random.default_rng(0).normal(size=(64, 24)).astype(np.float32)
    values[37] = 6e4
    table = Samples("train.npz", {"x": values}, 64)
    settings = {"twin": {}, "precision": "fp16", "batch": 8}
    found = through_twin(table, settings)
    assert found is not None
    assert found.rows == (37,)
    again = through_twin(table, {**settings, "precision": "fp32"})
    assert again is not None
    assert again.rows == ()


def test_tokens_without_a_label_make_a_batch_of_one_fail() -> None:
    ids = [[5, 6, 7, 8]] * 6
    labels = [list(row) for row in ids]
    labels[4] = [-100] * 4
    table = Samples("train.jsonl", {"input_ids": ids, "labels": labels}, 6)
    twin = {"family": "llama", "width": 32, "layers": 1}
    found = through_twin(table, {"twin": twin, "precision": "fp32", "batch": 1})
    assert found is not None
    assert found.rows == (4,)
    assert found.forwards == 6


def test_text_cannot_be_passed_through_a_twin() -> None:
    table = Samples("train.jsonl", {"text": ["a", "b"]}, 2)
    assert through_twin(table, {"twin": {}, "precision": "fp32", "batch": 1}) is None

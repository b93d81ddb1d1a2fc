"""Maps from class names to numbers."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        ("train classes: {'ant': 0, 'bee': 1, 'crab': 2}", "val classes: {'bee': 0, 'crab': 1}", True),
        ('label2id = {"no": 0, "yes": 1}', "labels of the test set: {'yes': 0, 'no': 1}", True),
        ("class_to_idx: {'ant': 0, 'bee': 1}", "class_to_idx: {'ant': 0, 'bee': 1, 'crab': 2}", False),
        ("classes: {'cat': 0, 'dog': 1}", "labels: {'red': 0, 'blue': 1}", False),
        ("class weights: {'cat': 3, 'dog': 3}", "classes: {'cat': 0, 'dog': 1}", False),
        ("counts: {'ant': 12, 'bee': 9}", "val counts: {'ant': 2, 'bee': 1}", False),
    ],
)
def test_classes_with_two_numbers(facts_of: Any, one: str, other: str, clash: bool) -> None:
    assert ("labels.index_conflict" in facts_of({"train.log": f"{one}\n{other}\nready\n"})) is clash

"""How the splits were evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

Reported = Callable[[Mapping[str, Any]], dict[str, Any]]
COCO = " Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = {}\n"


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("test_transform: Compose(RandomHorizontalFlip(p=0.5) ToTensor())\n", True),
        ("test_transform: Compose(RandomResize([800]) ToTensor())\n", False),
        ("train_transform: Compose(RandomHorizontalFlip(p=0.5) ToTensor())\n", None),
        ("Namespace(eval=True, lr=0.1)\nCompose(RandomErasing(p=0.5) ToTensor())\n", True),
        ("Namespace(eval=False, lr=0.1)\nCompose(RandomErasing(p=0.5) ToTensor())\n", None),
    ],
)
def test_random_transforms_in_an_evaluation(reported: Reported, log: str, expected: bool | None) -> None:
    assert reported({"run.log": f"{log}start\n"}).get("eval.augmented") is expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("val_transforms:\n  - RandomErasing: {p: 0.3}\n  - ToTensor: {}\n", True),
        ("data:\n  test:\n    pipeline:\n      - type: HorizontalFlip\n", True),
        ("val_transforms:\n  - Resize: {size: 256}\ntrain_transforms:\n  - RandomErasing: {p: 0.3}\n", False),
    ],
)
def test_random_transforms_in_the_settings(reported: Reported, config: str, expected: bool) -> None:
    assert reported({"config.yaml": config}).get("eval.augmented") is expected


@pytest.mark.parametrize(("train", "held", "worse"), [(0.12, 0.5, True), (0.5, 0.45, False)])
def test_training_data_held_against_held_out_data(reported: Reported, train: float, held: float, worse: bool) -> None:
    found = reported({"eval_train.log": COCO.format(train), "eval_val.log": COCO.format(held)})
    assert found["eval.train_split_worse"] is worse


def test_one_split_alone_is_no_comparison(reported: Reported) -> None:
    assert "eval.train_split_worse" not in reported(
        {"eval_val.log": COCO.format(0.4), "eval_test.log": COCO.format(0.1)}
    )

"""Transforms and score summaries that evaluations print."""

from __future__ import annotations

from typing import Any

import pytest

DATASET = """Dataset ImageFolder
    Number of datapoints: 1000
    Root location: /data/birds/{split}
    StandardTransform
Transform: Compose(
               {first}(size=(224, 224), ratio=(0.75, 1.33))
               ToTensor()
               Normalize(mean=[0.5, 0.5, 0.5], std=[0.2, 0.2, 0.2])
           )
epoch 1 loss 2.0
"""


def test_transforms_of_a_printed_data_set(read: Any) -> None:
    found = read("train.log", DATASET.format(split="val", first="RandomResizedCrop"))
    event = found.one("data.transforms")
    assert event.attrs == {
        "names": ["RandomResizedCrop", "ToTensor", "Normalize"],
        "for": None,
        "root": "/data/birds/val",
        "split": "held out",
    }
    assert found.metrics("loss") == [(1, 2.0)]


@pytest.mark.parametrize(
    ("line", "names", "used"),
    [
        ("val_tf = Compose([Resize((256, 256)), ToTensor()])", ["Resize", "ToTensor"], "held out"),
        ("train tf: Compose(ColorJitter(p=0.1) <x.ToTensor object at 0x7f>)", ["ColorJitter", "ToTensor"], "train"),
    ],
)  # fmt: skip
def test_transforms_on_one_line(read: Any, line: str, names: list[str], used: str) -> None:
    event = read("train.log", f"{line}\n").one("data.transforms")
    assert (event.attr("names"), event.attr("for")) == (names, used)


def test_the_summary_of_coco_scores(read: Any) -> None:
    found = read(
        "eval.log",
        " Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.456\n"
        " Average Precision  (AP) @[ IoU=0.50      | area=   all | maxDets=100 ] = 0.661\n"
        " Average Precision  (AP) @[ IoU=0.50:0.95 | area= small | maxDets=100 ] = 0.187\n"
        " Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets=  1 ] = 0.433\n",
    )
    assert found.metrics("eval_map") == [(None, 0.456)]
    assert found.metrics("eval_map50") == [(None, 0.661)]

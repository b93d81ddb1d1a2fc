"""Tables of metrics with a row an epoch, as loops print them into a log."""

from __future__ import annotations

from typing import Any

import pytest

FASTAI = """epoch     train_loss  valid_loss  accuracy  time
0         0.512345    0.612345    0.710000  00:41
some warning in between
1         0.412345    0.592345    0.730000  00:40
"""
MARKDOWN = """| Epoch | Train Loss | Val Loss | Val F1 |
|------:|-----------:|---------:|-------:|
| 0 | 0.512345 | 0.612345 | 0.5 |
| 1 | 0.412345 | 0.592345 | 0.6 |
"""
RICH = """┏━━━━━━━┳━━━━━━━━━━━━┳━━━━━━━━━━┓
┃ epoch ┃ train_loss ┃ val_loss ┃
┡━━━━━━━╇━━━━━━━━━━━━╇━━━━━━━━━━┩
│ 0     │ 0.512345   │ 0.612345 │
│ 1     │ 0.412345   │ 0.592345 │
└───────┴────────────┴──────────┘
"""
NOTEBOOK = "Epoch\tTraining Loss\tValidation Loss\n0\t0.512345\t0.612345\n1\t0.412345\t0.592345\n"


@pytest.mark.parametrize("prefix", ["", "2024-05-01 10:00:00,123 INFO train: "])
@pytest.mark.parametrize("table", [FASTAI, MARKDOWN, RICH, NOTEBOOK])
def test_every_drawing_of_a_table(read: Any, table: str, prefix: str) -> None:
    found = read("train.log", "".join(f"{prefix}{line}\n" for line in table.splitlines()))
    assert found.metrics("loss") == [(0, 0.512345), (1, 0.412345)]
    assert found.metrics("eval_loss") == [(0, 0.612345), (1, 0.592345)]


def test_an_epoch_beyond_all_counting_costs_only_itself(read: Any) -> None:
    found = read("train.log", FASTAI.replace("\n1  ", "\n17000000000000000000  "))
    assert found.metrics("loss") == [(0, 0.512345), (None, 0.412345)]


def test_a_score_without_a_split_belongs_to_the_validation(read: Any) -> None:
    assert read("train.log", FASTAI).metrics("eval_accuracy") == [(0, 0.71), (1, 0.73)]


@pytest.mark.parametrize(
    "text",
    [
        "epoch and step of the loss are logged\n1 2 3\n",
        "      Epoch    GPU_mem   box_loss   cls_loss\n       1/50      3.2G      1.204      2.001\n",
        "| model | loss |\n| a | 1.0 |\n",
    ],
)
def test_other_headers(read: Any, text: str) -> None:
    assert read("train.log", text).metrics("loss") == []

"""Groups on both sides of a split, and scores on data from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

Reported = Callable[[Mapping[str, Any]], dict[str, Any]]


@pytest.mark.parametrize(("train", "held", "share"), [(60, 60, 1.0), (50, 20, 0.5), (48, 12, 0.0)])
def test_groups_that_add_up_to_more_than_there_are(reported: Reported, train: int, held: int, share: float) -> None:
    log = f"clips: 9,000 from 60 speakers\nspeakers in train {train} | speakers in val {held}\nstart\n"
    assert reported({"train.log": log})["data.groups_shared_share"] == share


def test_another_group_is_no_total(reported: Reported) -> None:
    log = "clips: 9,000 from 60 rooms\nspeakers in train 60 | speakers in val 60\nstart\n"
    assert "data.groups_shared_share" not in reported({"train.log": log})


@pytest.mark.parametrize("score", ["0.70", "70.0"])
def test_a_score_from_elsewhere(reported: Reported, score: str) -> None:
    log = "epoch 1 loss 0.5 val_acc 0.90\nepoch 2 loss 0.4 val_acc 1.00\n" + f"new hospital accuracy: {score}\n"
    assert reported({"train.log": log})["eval.external_lost"] == pytest.approx(0.3)

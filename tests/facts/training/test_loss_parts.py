"""Losses that are summed: which of them is not finite."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ..tables import Run, decay

NAN = [math.nan] * 20


def test_the_part_that_is_not_finite_is_named() -> None:
    found = Run().curves({"lm_loss": decay(20), "kd_loss": NAN, "loss": NAN}).values()
    assert found["loss.nan_component"] == "kd_loss"


@pytest.mark.parametrize(
    "curves",
    [
        {"lm_loss": NAN, "kd_loss": NAN, "loss": NAN},
        {"lm_loss": decay(20), "kd_loss": decay(20), "loss": decay(20)},
        {"eval_loss": NAN, "kd_loss": decay(20), "loss": decay(20)},
        {"lm_loss": decay(20), "kd_loss": [*decay(18), math.nan, math.nan], "loss": decay(20)},
    ],
)
def test_otherwise_none_is(curves: dict[str, list[float]]) -> None:
    assert "loss.nan_component" not in Run().curves(curves).values()


def columns(box: list[str], cls: list[str]) -> str:
    rows = [f"{epoch},{a},{b},0.01" for epoch, (a, b) in enumerate(zip(box, cls, strict=True))]
    return "\n".join(["epoch,train/box_loss,train/cls_loss,lr/pg0", *rows, ""])


def test_every_part_is_lost(facts_of: Any) -> None:
    found = facts_of({"results.csv": columns(["nan"] * 6, ["nan"] * 6)})
    assert found["loss.parts_nan"] is True
    assert found["loss.parts_nan_at_start"] is True
    later = ["3.1", "2.9", "2.8", "nan", "nan", "nan"]
    found = facts_of({"results.csv": columns(later, later)})
    assert found["loss.parts_nan"] is True
    assert found["loss.parts_nan_at_start"] is False


def test_parts_that_stay_or_come_back(facts_of: Any) -> None:
    finite = ["3.1", "2.9", "2.8", "2.7", "2.6", "2.5"]
    assert "loss.parts_nan" not in facts_of({"results.csv": columns(finite, ["nan"] * 6)})
    back = ["3.1", "nan", "nan", "2.7", "2.6", "2.5"]
    assert "loss.parts_nan" not in facts_of({"results.csv": columns(back, back)})


def test_one_part_that_needs_no_model_may_stay() -> None:
    lost = [*decay(14), *[math.nan] * 6]
    curves = {"gen_loss": lost, "disc_loss": lost, "kl_loss": lost, "mel_loss": decay(20)}
    assert Run().curves(curves).values()["loss.parts_nan"] is True
    assert "loss.parts_nan" not in Run().curves({**curves, "disc_loss": decay(20), "kl_loss": decay(20)}).values()


def test_a_part_far_below_zero_at_single_points_is_named() -> None:
    ctc = [*decay(8, 90, 40), -5.7e35, *decay(8, 39, 20), -5.7e35, 18.0]
    found = Run().curves({"main/loss_ctc": ctc, "main/loss_att": decay(19)}).values()
    assert found["loss.negative_part"] == "main/loss_ctc"
    assert "loss.negative_part" not in Run().curves({"nll_loss": decay(19, 4, -11)}).values()

"""Losses that are summed: which of them is not finite."""

from __future__ import annotations

import math

import pytest

from .tables import Run, decay

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

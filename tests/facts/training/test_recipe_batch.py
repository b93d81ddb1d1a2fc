"""The batch that a recipe is meant for."""

from __future__ import annotations

from typing import Any

import pytest

from ..tables import Run, decay

OFF = "dict(enable=False, base_batch_size=16)"


@pytest.mark.parametrize(
    ("settings", "over"),
    [
        ({"auto_scale_lr": OFF, "batch_size": 2, "gpu_ids": "[0]"}, 8),
        ({"auto_scale_lr": OFF, "batch_size": 16, "launcher": "'none'"}, 1),
        ({"auto_scale_lr": OFF, "batch_size": 2, "launcher": "pytorch"}, None),
        ({"auto_scale_lr": OFF, "batch_size": 2}, None),
        ({"auto_scale_lr": OFF.replace("False", "True"), "batch_size": 2, "gpu_ids": "[0]"}, None),
        ({"batch_size": 2, "gpu_ids": "[0]"}, None),
    ],
)
def test_one_device_with_the_recipe_of_eight(settings: dict[str, Any], over: float | None) -> None:
    assert Run().config(**settings).curves({"loss": decay(20)}).values().get("lr.recipe_batch_over") == over

"""The norm of all parameters."""

from __future__ import annotations

import numpy as np
import pytest

from ..tables import Run, decay


def test_norm_that_never_changes() -> None:
    found = Run().curves({"params norm": [142.387] * 30}).values()
    assert found["parameters.total_norm_constant"] is True


def test_norm_that_shrinks() -> None:
    found = Run().curves({"param/total_norm": decay(60, 400.0, 20.0, noise=0.0)}).values()
    assert found["parameters.total_norm_ratio"] == pytest.approx(0.05, rel=0.2)
    assert found["parameters.total_norm_constant"] is False


def test_adapters_do_not_show_in_the_norm_of_a_frozen_model() -> None:
    found = Run().config(lora_r=8).curves({"param_norm": [142.387] * 30}).values()
    assert "parameters.total_norm_constant" not in found


def test_few_points_say_nothing() -> None:
    found = Run().curves({"param_norm": np.full(8, 142.387)}).values()
    assert not [name for name in found if name.startswith("parameters.total_norm")]

from __future__ import annotations

import math

import numpy as np

from ..tables import Run, around, decay, joined


def values(norm: object, **settings: object) -> dict[str, object]:
    return Run().config(**settings).curves({"loss": decay(len(norm)), "grad_norm": norm}).values()  # type: ignore[arg-type]


def test_ordinary_norms() -> None:
    found = values(around(1.3, 200, 0.2))
    assert found["grad_norm.rising"] is False
    assert found["grad_norm.tiny"] is False
    assert found["grad_norm.over_100"] is False
    assert found["grad_norm.max_over_median"] < 3
    assert found["grad_norm.spikes"] == 0
    assert "grad_norm.spike_step" not in found
    assert found["grad_norm.nan_share"] == 0


def test_large_first_norms_are_no_explosion() -> None:
    found = values(joined([90, 40, 12], around(1.0, 200)))
    assert found["grad_norm.max_over_median"] < 3


def test_spike() -> None:
    norm = around(1.0, 200)
    norm[150] = 240.0
    found = values(norm)
    assert found["grad_norm.spike_step"] == 150
    assert found["grad_norm.over_100"] is True
    assert found["grad_norm.spikes"] == 1
    assert found["grad_norm.rising"] is False


def test_sums_with_large_norms_are_usual() -> None:
    assert values(around(250.0, 200))["grad_norm.over_100"] is False


def test_growth_at_the_end() -> None:
    found = values(joined(around(1.0, 100), np.geomspace(1, 60, 10)))
    assert found["grad_norm.rising"] is True
    assert found["grad_norm.growth"] > 10


def test_non_finite_norms() -> None:
    found = values(joined(around(1.0, 50), [math.inf], around(1.0, 50)))
    assert found["grad_norm.nan_step"] == 50
    assert found["grad_norm.nan_isolated"] is True
    found = values(joined(around(1.0, 50), [math.inf], around(1.0, 20), [math.nan] * 10))
    assert found["grad_norm.nan_step"] == 71
    assert found["grad_norm.nan_isolated"] is False


def test_zero_and_tiny_norms() -> None:
    assert values([0.0] * 30)["grad_norm.zero_share"] == 1
    assert "grad_norm.tiny" not in values([0.0] * 30)
    assert values(around(3e-9, 50))["grad_norm.tiny"] is True


def test_vanishing_over_time() -> None:
    assert values(np.geomspace(1, 1e-6, 100))["grad_norm.falling"] is True
    assert values(np.linspace(1, 0.2, 100))["grad_norm.falling"] is False


def test_clipping() -> None:
    assert values(around(3.0, 100), max_grad_norm=1.0)["grad_norm.clipped_share"] == 1
    assert values(around(0.3, 100), max_grad_norm=1.0)["grad_norm.clipped_share"] == 0
    assert "grad_norm.clipped_share" not in values(around(0.3, 100))

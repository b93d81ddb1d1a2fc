from __future__ import annotations

import numpy as np
import pytest

from ..tables import Run, around, decay


def values(loss: np.ndarray) -> dict[str, object]:
    return Run().curves({"loss": loss}).values()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("noise", [0.02, 0.1, 0.3])
def test_healthy_curves_have_no_spikes(seed: int, noise: float) -> None:
    assert values(decay(300, noise=noise, seed=seed))["loss.spikes"] == 0


def test_one_spike_that_recovers() -> None:
    loss = decay(200)
    loss[120:124] = [4.0, 9.0, 6.0, 3.5]
    found = values(loss)
    assert found["loss.spikes"] == 1
    assert found["loss.spike_recovered"] is True
    assert found["loss.spike_step"] == 121
    assert found["loss.spike_size"] > 3


def test_spike_that_stays_up() -> None:
    loss = decay(200, start=8.0, end=2.0)
    loss[150:] = around(3.6, 50)
    found = values(loss)
    assert found["loss.spikes"] == 1
    assert found["loss.spike_recovered"] is False


def test_divergence_is_no_spike() -> None:
    assert values(np.concatenate([decay(100), np.geomspace(2, 90, 60)]))["loss.spikes"] == 0


def test_oscillation_tells_steady_from_jumping() -> None:
    calm = values(decay(200, noise=0.02))
    wild = values(np.abs(np.random.default_rng(0).lognormal(1.0, 1.2, 200)))
    assert calm["loss.oscillation"] < 0.05
    assert wild["loss.oscillation"] > 0.5
    assert calm["loss.swing"] < 1.2
    assert wild["loss.swing"] > 5


def test_repeating_pattern() -> None:
    tooth = np.tile(np.linspace(2.4, 0.6, 20), 12) + np.random.default_rng(0).normal(0, 0.05, 240)
    assert values(tooth)["loss.period_steps"] == 20
    assert "loss.period_steps" not in values(decay(240, noise=0.1))

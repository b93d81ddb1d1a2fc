from __future__ import annotations

import math
from typing import Any

import pytest

from rca.experiments.twin.config import TwinConfig, changed, reference_of

SHORT = {"family": "gpt2", "lr": 0.002, "steps": 6, "batch": 4}


def test_the_same_arm_gives_the_same_bits(torch: Any) -> None:
    from rca.experiments.twin.train import train_arm

    one, other = (train_arm(TwinConfig(**SHORT), 5) for _ in range(2))
    assert one["curve_hash"] == other["curve_hash"]
    assert one["eval_loss"] == other["eval_loss"]
    assert one["curve_hash"] != train_arm(TwinConfig(**SHORT), 6)["curve_hash"]


def test_an_optimizer_without_parameters_moves_nothing(torch: Any) -> None:
    from rca.experiments.twin.train import train_arm

    assert train_arm(TwinConfig(**SHORT, frozen="all"), 0)["tensors_moved"] == 0
    free = train_arm(TwinConfig(**SHORT), 0)
    assert free["tensors_moved"] == free["tensors"]


def test_a_batch_that_is_not_finite_ruins_the_weights_and_is_left_out_on_request(torch: Any) -> None:
    from rca.experiments.twin.train import train_arm

    bad = TwinConfig(**SHORT, bad_batch="nonfinite", bad_step=2)
    ruined = train_arm(bad, 0)
    assert [math.isfinite(loss) for loss in ruined["losses"]] == [True, True, False, False, False, False]
    assert not math.isfinite(ruined["eval_loss"])
    saved = train_arm(changed(bad, {"skip_bad_batches": True}), 0)
    assert saved["losses"][2] is None
    assert saved["dropped"] == 1
    assert math.isfinite(saved["eval_loss"])


@pytest.mark.parametrize("family", ["llama", "bert", "t5", "opt", "cnn", "mlp"])
def test_every_kind_of_model_trains(torch: Any, family: str) -> None:
    from rca.experiments.twin.train import train_arm

    result = train_arm(TwinConfig(family=family, steps=3, batch=2, accumulation=2), 0)
    assert all(math.isfinite(loss) for loss in result["losses"])
    assert result["parameters"] > 1000


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd", "rmsprop", "adagrad"])
def test_every_optimizer_steps(torch: Any, optimizer: str) -> None:
    from rca.experiments.twin.train import train_arm

    result = train_arm(TwinConfig(family="mlp", optimizer=optimizer, steps=3, clip=1.0, warmup=2), 0)
    assert result["tensors_moved"] == result["tensors"]


@pytest.mark.slow
def test_the_map_makes_a_narrow_and_a_wide_twin_agree(torch: Any) -> None:
    """One rate for a real width of 128: the mapped twin of 32 fails and learns where 128 itself does."""
    from rca.experiments.twin.train import train_arm

    def lost(width: int, rate: float) -> float:
        config = TwinConfig(width=width, ff=8 * width // 3 // 4 * 4, lr=rate, lr_factor=128 / width)
        config = changed(config, {"init_std": 0.02 * math.sqrt(128 / width), "steps": 40})
        best = train_arm(reference_of(config), 0)["eval_loss"]
        return (train_arm(config, 0)["eval_loss"] - best) / (config.chance - best)

    for rate, fails in ((0.002, False), (0.2, True)):
        assert (lost(128, rate) > 0.25) is fails
        assert (lost(32, rate) > 0.25) is fails

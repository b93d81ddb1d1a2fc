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


def test_a_schedule_goes_up_and_down(torch: Any) -> None:
    from rca.experiments.twin.train import _share_of_peak

    config = TwinConfig(warmup=4, decay=0.2, decay_steps=8)
    shares = [_share_of_peak(config, step) for step in range(60)]
    assert shares[:4] == [0.25, 0.5, 0.75, 1.0]
    assert shares[7] == pytest.approx(0.6)
    assert shares[11:] == [pytest.approx(0.2)] * 49
    assert _share_of_peak(TwinConfig(), 59) == 1.0


def test_gradients_that_are_kept_or_added_up_are_larger(torch: Any) -> None:
    from rca.experiments.twin.train import train_arm

    def norms(**settings: Any) -> list[float]:
        config = TwinConfig(family="mlp", optimizer="sgd", lr=1e-6, steps=4, batch=2, accumulation=4, **settings)
        found: list[float] = train_arm(config, 0)["grad_norms"]
        return found

    plain = norms()
    assert norms(accumulation_mean=False) == pytest.approx([4 * norm for norm in plain], rel=1e-4)
    assert norms(zero_grad=False)[3] > 2 * plain[3]


def test_gradients_below_half_precision_need_a_scale(torch: Any) -> None:
    from rca.experiments.twin.train import train_arm

    config = TwinConfig(family="mlp", precision="fp16", loss_factor=1e-6, steps=4)
    assert train_arm(config, 0)["tensors_moved"] == train_arm(config, 0)["tensors"]
    unscaled = train_arm(changed(config, {"scaler": False}), 0)
    assert sorted(unscaled["grad_norms"])[2] < 1e-5
    assert train_arm(changed(config, {"frozen": "all"}), 0)["tensors_moved"] == 0


def test_a_loss_scale_that_starts_too_high_skips_steps(torch: Any) -> None:
    from rca.experiments.twin.train import train_arm

    result = train_arm(TwinConfig(family="mlp", precision="fp16", init_scale=2.0**24, steps=16), 0)
    assert result["skipped"][:5] == [1] * 5
    assert result["skipped"][-1] == 0


def test_sigmoids_in_depth_take_the_gradient_from_the_first_layer(torch: Any) -> None:
    from rca.experiments.twin.train import train_arm

    deep = {"family": "mlp", "layers": 4, "steps": 5}
    assert train_arm(TwinConfig(**deep, activation="sigmoid"), 0)["layer_ratio"] < 1e-3
    assert train_arm(TwinConfig(**deep, activation="relu"), 0)["layer_ratio"] > 1e-2


def test_few_samples_are_learnt_by_heart(torch: Any) -> None:
    from rca.experiments.twin.train import train_arm

    result = train_arm(TwinConfig(family="mlp", samples=6), 0)
    unseen = [loss for _, loss in result["watched"]]
    assert result["losses"][-1] < 0.1
    assert unseen[-1] > 1.05 * min(unseen)


@pytest.mark.parametrize("family", ["gpt2", "bert"])
def test_activation_dropout_and_norms_reach_the_model(torch: Any, family: str) -> None:
    from rca.experiments.twin.models import build

    settings = {"activation": "tanh", "dropout": 0.3, "norm_eps": 1e-3}
    model: Any = build(TwinConfig(family=family, **settings))
    assert {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)} == {0.3}
    assert {module.eps for module in model.modules() if isinstance(module, torch.nn.LayerNorm)} == {1e-3}


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

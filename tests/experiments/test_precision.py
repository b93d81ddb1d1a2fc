from __future__ import annotations

import math
from typing import Any

import pytest

from rca.experiments.twin.config import TwinConfig


def test_emulated_products_equal_native_half_products(torch: Any) -> None:
    from rca.experiments.precision import AsOnGpu

    torch.manual_seed(0)
    one = torch.randn(96, 128, dtype=torch.float16)
    other = torch.randn(128, 64, dtype=torch.float16)
    native = one @ other
    with AsOnGpu(torch.float16):
        emulated = one @ other
    assert emulated.dtype is torch.float16
    assert (native == emulated).float().mean() > 0.995
    assert (native - emulated).abs().max() <= 2 * torch.finfo(torch.float16).eps * native.abs().max()


def test_products_beyond_65504_become_infinite(torch: Any) -> None:
    from rca.experiments.precision import AsOnGpu

    large = torch.full((4, 64), 40.0, dtype=torch.float16)
    with AsOnGpu(torch.float16):
        assert torch.isinf(large @ large.T).all()


def test_gradients_are_rounded_as_native_half_rounds_them(torch: Any) -> None:
    from rca.experiments.precision import AsOnGpu

    torch.manual_seed(1)
    inputs = torch.randn(32, 48)
    start = torch.randn(48, 24)
    weights = [start.clone().requires_grad_() for _ in range(2)]
    native = (inputs.half() @ weights[0].half()).float().square().sum()
    with AsOnGpu(torch.float16):
        product = inputs @ weights[1]
    emulated = product.float().square().sum()
    for loss in (native, emulated):
        loss.backward()
    assert (weights[0].grad == weights[1].grad).float().mean() > 0.99


def test_softmax_and_log_run_in_fp32_as_on_a_gpu(torch: Any) -> None:
    from rca.experiments.precision import forward_precision

    with forward_precision("fp16", "cpu"):
        product = torch.randn(4, 8) @ torch.randn(8, 8)
        assert product.dtype is torch.float16
        assert torch.softmax(product, dim=-1).dtype is torch.float32
        assert torch.exp(product).dtype is torch.float32
        assert torch.nn.functional.layer_norm(product, (8,)).dtype is torch.float32


def test_fp32_is_left_alone(torch: Any) -> None:
    from rca.experiments.precision import forward_precision

    with forward_precision("fp32", "cpu"):
        assert (torch.randn(4, 8) @ torch.randn(8, 8)).dtype is torch.float32


def test_half_training_follows_fp32_and_the_scaler_does_not_skip(torch: Any) -> None:
    from rca.experiments.twin.train import train_arm

    settings = {"steps": 8, "family": "gpt2", "lr": 0.002, "batch": 4}
    full = train_arm(TwinConfig(**settings), 0)
    half = train_arm(TwinConfig(**settings, precision="fp16"), 0)
    assert sum(half["skipped"]) == 0
    assert half["losses"] == pytest.approx(full["losses"], abs=2e-3)


def test_a_loss_in_half_overflows_and_the_same_loss_in_fp32_does_not(torch: Any) -> None:
    from rca.experiments.twin.train import train_arm

    settings = {"steps": 12, "precision": "fp16", "loss": "exp_log", "logit_offset": 12.0, "batch": 4}
    half = train_arm(TwinConfig(**settings, loss_dtype="low"), 0)
    full = train_arm(TwinConfig(**settings, loss_dtype="fp32"), 0)
    assert not any(math.isfinite(loss) for loss in half["losses"])
    assert sum(half["skipped"]) == 12
    assert half["scales"][-1] == 65536 / 2**12
    assert all(math.isfinite(loss) for loss in full["losses"])
    assert sum(full["skipped"]) == 0

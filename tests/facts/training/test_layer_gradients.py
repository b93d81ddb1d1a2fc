from __future__ import annotations

from ..tables import Run


def test_norms_that_shrink_towards_the_input() -> None:
    norms = {f"grad_norm/block{i}": [10.0 ** (2 * i - 13)] * 8 for i in range(7)}
    found = Run().curves(norms, every=10).values()
    assert found["grad_norm.layers"] == 7
    assert found["grad_norm.layers_vanish"] is True


def test_ordinary_differences_between_layers() -> None:
    norms = {f"grad_norm/block{i}": [0.1 * (1 + i % 3)] * 8 for i in range(7)}
    assert Run().curves(norms, every=10).values()["grad_norm.layers_vanish"] is False


def test_one_unused_layer_is_not_a_vanishing_gradient() -> None:
    norms = {f"grad_norm/block{i}": [1e-9 if i == 4 else 0.2 - 0.01 * i] * 8 for i in range(7)}
    assert Run().curves(norms, every=10).values()["grad_norm.layers_vanish"] is False

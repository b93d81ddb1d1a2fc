"""The spelling of each model class, against transformers itself."""

from __future__ import annotations

from typing import Any

import pytest

from rca.experiments.repro import architecture
from rca.experiments.twin.config import DENSE, ENCODERS, FAMILIES, SEQ2SEQ, TwinConfig

SIZES: dict[str, Any] = {
    "hidden": 32, "layers": 3, "heads": 4, "kv_heads": 2, "ff": 48, "vocab": 50, "positions": 16, "labels": 5,
    "tied": True, "init_std": 0.03, "activation": "relu", "norm_eps": 1e-3,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(FAMILIES - DENSE))
def test_settings_make_the_model_that_the_twin_has(torch: Any, family: str) -> None:
    import transformers

    from rca.experiments.twin.models import transformer

    wanted = transformer(family, dropout=0.1, **SIZES)
    settings = architecture.settings(family, SIZES) | dict.fromkeys(architecture.dropouts(family), 0.1)
    config = transformers.AutoConfig.for_model(family, **settings)
    made: Any = getattr(transformers, architecture.auto_class(family))
    model = made.from_config(config, attn_implementation="eager")
    own, twin = model.config.to_dict(), wanted.config.to_dict()
    twin.pop("intermediate_size" if "intermediate_size" not in own else "", None)  # unknown to the class
    assert own == twin


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(FAMILIES - DENSE))
def test_the_down_projection_is_the_one_that_the_twin_widens(torch: Any, family: str) -> None:
    from rca.experiments.twin.models import build

    model = build(TwinConfig(family=family, activation_gain=2.0))
    (widened,) = [module for module in model.modules() if module._forward_pre_hooks]
    named = [m for name, m in model.named_modules() if name.endswith(architecture.down_projection(family))]
    assert named[-1] is widened
    assert (getattr(widened, "bias", None) is not None) is architecture.down_has_bias(family)


def test_each_family_has_a_class_for_its_task() -> None:
    for family in FAMILIES - DENSE:
        kind = architecture.auto_class(family)
        assert ("Seq2Seq" in kind) is (family in SEQ2SEQ)
        assert ("Classification" in kind) is (family in ENCODERS)


def test_activations_of_dense_networks() -> None:
    from rca.experiments.twin.families import ACTIVATIONS
    from rca.experiments.twin.models import _between

    for name in (None, *ACTIVATIONS):
        assert architecture.between(name) == f"nn.{type(_between(name)).__name__}()"

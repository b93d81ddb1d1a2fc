from __future__ import annotations

from typing import Any

import pytest

from rca.errors import ExperimentError
from rca.experiments.memory.planning import step_of

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}
SETTINGS = {"batch": 2, "seq": 512}


def test_sizes_come_from_the_configuration() -> None:
    step, note = step_of(LLAMA, settings=SETTINGS)
    assert (step.hidden, step.layers, step.kv_heads, step.ff, step.batch) == (4096, 32, 8, 14336, 2)
    assert note == ""


def test_a_similar_class_stands_in_and_that_is_said() -> None:
    step, note = step_of({**LLAMA, "model_type": "phi3"}, settings=SETTINGS)
    assert step.family == "llama"
    assert "traced as llama" in note


def test_names_of_single_families_are_understood() -> None:
    step, _ = step_of(
        {"model_type": "distilbert", "hidden_size": 768, "num_layers": 6, "num_attention_heads": 12, "hidden_dim": 3072,
         "vocab_size": 30522},
        settings=SETTINGS,
    )  # fmt: skip
    assert step.ff == 3072


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"model_type": "resnet"}, "resnet"),
        ({"num_experts": 8}, "8 experts"),
        ({"vocab_size": None}, "vocab_size"),
        ({"num_attention_heads": 7}, "7 heads"),
        ({"num_layers": -1}, "layers"),
    ],
)
def test_what_cannot_be_traced_is_said(change: dict[str, Any], word: str) -> None:
    with pytest.raises(ExperimentError, match=word):
        step_of({**LLAMA, **change}, settings=SETTINGS)

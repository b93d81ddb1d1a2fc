"""A model of the run's class, repeated in both modes, against what the run's own repetitions did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rca.errors import ExperimentError
from tests.experiments.checks.conftest import Judge

GPT2 = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "vocab_size": 64,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
}


def write(folder: Path, **change: Any) -> None:
    (folder / "config.json").write_text(json.dumps({**GPT2, **change}))


@pytest.mark.parametrize(
    ("spread", "verdict"), [(None, "inconclusive"), (0.0, "refuted"), (5e-5, "inconclusive"), (0.08, "confirmed")]
)
def test_dropout_and_the_runs_own_repetitions(
    tmp_path: Path, judged: Judge, spread: float | None, verdict: str
) -> None:
    write(tmp_path)
    found = judged("repeat_determinism", repeat_spread=spread)
    assert found.verdict == verdict, found.reason
    rows = dict(found.details)
    assert "Dropout" in rows["layers that act at random or on the batch in train mode"]
    assert rows["in evaluation mode"].startswith("0")


def test_a_model_without_dropout_is_the_same_in_both_modes(tmp_path: Path, judged: Judge) -> None:
    write(tmp_path, attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0)
    found = judged("repeat_determinism", repeat_spread=0.08)
    assert found.verdict == "refuted"
    assert "the same in both modes" in found.reason


def test_sampling_explains_the_difference_as_well(tmp_path: Path, judged: Judge) -> None:
    write(tmp_path)
    (tmp_path / "generation_config.json").write_text('{"do_sample": true}')
    assert judged("repeat_determinism", repeat_spread=0.08).verdict == "inconclusive"


def test_batch_normalisation_depends_on_the_batch(judged: Judge) -> None:
    found = judged("repeat_determinism", family="cnn", repeat_spread=0.08)
    assert found.verdict == "confirmed"
    assert "3 BatchNorm2d" in dict(found.details).values()


def test_stored_weights_are_used_where_they_are_small(tmp_path: Path, judged: Judge, torch: Any) -> None:
    from safetensors.torch import save_file

    from rca.experiments.checks.model_class import class_of

    write(tmp_path)
    made, config = class_of(GPT2)
    state = {name: value.clone() for name, value in made(config).state_dict().items() if name != "lm_head.weight"}
    save_file(state, tmp_path / "model.safetensors")
    assert dict(judged("repeat_determinism").details)["model"] == "GPT2LMHeadModel with the stored weights"


def test_too_large_or_unknown_a_model_is_replaced_or_refused(tmp_path: Path, judged: Judge) -> None:
    write(tmp_path, n_embd=2048, n_layer=24)
    with pytest.raises(ExperimentError, match="parameters"):
        judged("repeat_determinism")
    found = judged("repeat_determinism", family="gpt2", dropout=0.1)
    assert dict(found.details)["model"] == "a tiny gpt2 with the run's dropout"


def test_without_a_model_nothing_is_tested(judged: Judge) -> None:
    with pytest.raises(ExperimentError, match=r"no config\.json"):
        judged("repeat_determinism", family="llama")

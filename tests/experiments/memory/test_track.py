from __future__ import annotations

from typing import Any

import pytest

from tests.experiments.memory.steps import SMALL, question


def test_live_bytes_counts_what_lives_and_remembers_the_peak(torch: Any) -> None:
    from rca.experiments.memory.track import LiveBytes

    with LiveBytes() as tracker:
        one = torch.zeros(1000)
        two = one + 1
        assert tracker.live == 8000
        view = two[:10]
        del one, two
        assert tracker.live == 4000
        del view
        assert tracker.live == 0
    assert tracker.peak == 8000


def test_live_bytes_knows_logits_and_gradients_and_the_moment_of_the_peak(torch: Any) -> None:
    from rca.experiments.memory.track import LiveBytes

    with LiveBytes(logits=(6, 50)) as tracker:
        logits = torch.zeros(2, 3, 50)
        tracker.enter("later")
        gradient = torch.zeros(1000)
        tracker.watch(gradient, "gradients")
        more = torch.zeros(10)
        del logits, gradient, more
    assert tracker.moments["start"][1] == {"held": 0, "gradients": 0, "logits": 1200, "activations": 0}
    assert tracker.moments["later"][1] == {"held": 0, "gradients": 4000, "logits": 1200, "activations": 40}


def test_weights_are_exact_and_activations_follow_the_formula(torch: Any) -> None:
    from rca.experiments.memory.track import peak

    small = question(layers=4)
    tracked = peak(small)
    per_layer = 4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096
    assert tracked["parameters"] == 4 * per_layer + 2 * 32000 * 4096 + 4096
    assert tracked["matrices"] == 4 * (4 * 4096**2 + 3 * 4096 * 11008)
    assert tracked["layer"] == 4 * per_layer
    deeper = peak(question(layers=8))
    grown = deeper["start.activations"] - tracked["start.activations"]
    assert grown / 4 / 2048 == pytest.approx(83 * 4096, rel=0.01)
    assert tracked["start.logits"] == pytest.approx(2 * 4 * 32000 * 2048, rel=0.01)


@pytest.mark.parametrize("family", ["gpt2", pytest.param("t5", marks=pytest.mark.slow)])
def test_depth_is_continued_linearly_in_every_moment(torch: Any, family: str) -> None:
    from rca.experiments.memory.track import _track, at_depth, peak

    six = question(family=family, **SMALL)
    continued, whole = peak(six), _track(six, 6)
    for name, value in continued.items():
        assert value == pytest.approx(whole[name], rel=0.02, abs=5e4), name
    assert at_depth(six, lambda _question, depth: {"depth": float(depth)})["depth"] == 6


@pytest.mark.parametrize(
    "family", ["bert", "opt", pytest.param("t5", marks=pytest.mark.slow), pytest.param("qwen2", marks=pytest.mark.slow)]
)
def test_other_families_are_traced(torch: Any, family: str) -> None:
    from rca.experiments.memory.track import peak

    sizes = {"hidden": 256, "heads": 4, "kv_heads": 4, "ff": 512, "vocab": 1000, "layers": 6, "seq": 64, "batch": 2}
    tracked = peak(question(family=family, **sizes, compute="fp16"))
    assert tracked["0 bottom.gradients"] > 0.3 * tracked["weights"] > 0
    assert tracked["end.gradients"] == pytest.approx(tracked["weights"], rel=0.02)


def test_a_step_without_training_keeps_no_layer(torch: Any) -> None:
    from rca.experiments.memory.track import peak

    sizes = {**SMALL, "layers": 4}
    few, many = (peak(question(**{**sizes, "layers": n}, task="generate")) for n in (4, 40))
    assert few["start.activations"] == many["start.activations"]
    assert few["start.gradients"] == 0


def test_adapters_on_every_matrix_are_more_than_on_two(torch: Any) -> None:
    from rca.experiments.memory.track import peak

    two, every = (peak(question(**SMALL, lora_r=8, lora_targets=name)) for name in ("attention", "linear"))
    assert two["trainable"] == 6 * 2 * 8 * (128 + 128)
    assert every["trainable"] == 6 * 8 * (4 * (128 + 128) + 3 * (128 + 344))
    assert two["matrices"] == every["matrices"]


def test_a_kept_graph_leaves_its_activations_and_a_number_leaves_nothing(torch: Any) -> None:
    from rca.experiments.checks.kept_bytes import kept_bytes

    sizes = {"hidden": 128, "heads": 4, "kv_heads": 4, "ff": 344, "vocab": 512, "layers": 6, "seq": 64, "batch": 4}
    kept = kept_bytes({"question": question(**sizes).model_dump()})
    assert kept["number"] == 0
    assert kept["outputs"] == 4 * 64 * 512 * 4
    assert kept["graph"] > 5 * kept["outputs"]

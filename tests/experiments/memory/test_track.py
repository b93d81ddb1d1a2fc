from __future__ import annotations

from typing import Any

import pytest

from rca.experiments.memory.question import GIB, MemoryQuestion, apply, peak_of, state_of, usable


def question(**update: Any) -> MemoryQuestion:
    sizes = {
        "family": "llama",
        "hidden": 4096,
        "layers": 32,
        "heads": 32,
        "kv_heads": 32,
        "ff": 11008,
        "vocab": 32000,
        "batch": 1,
        "seq": 2048,
    }
    return MemoryQuestion(**{**sizes, **update})


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


def test_weights_are_exact_and_activations_follow_the_formula(torch: Any) -> None:
    from rca.experiments.memory.track import peak

    small = question(layers=4)
    tracked = peak(small)
    per_layer = 4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096
    assert tracked["parameters"] == 4 * per_layer + 2 * 32000 * 4096 + 4096
    wider = peak(question(layers=4, batch=2))
    growth = (wider["forward_backward"] - tracked["forward_backward"]) / 2048
    logits = 3 * 4 * 32000
    assert 0.7 < growth / (4 * 85 * 4096 + logits) < 1.3


def test_depth_is_continued_linearly(torch: Any) -> None:
    from rca.experiments.memory.track import at_depth, peak

    eight = question(hidden=512, heads=8, kv_heads=8, ff=1376, vocab=4096, layers=8, seq=256)
    continued = peak(eight)["forward_backward"]
    from rca.experiments.memory.track import _track

    assert continued == pytest.approx(_track(eight, 8)["forward_backward"], rel=0.02)
    assert at_depth(eight, lambda _question, depth: {"depth": float(depth)})["depth"] == 8


def test_the_tracker_is_an_upper_bound_of_the_allocator(torch: Any) -> None:
    """Against what a real step on the CPU allocates, as the profiler saw it."""
    from torch.profiler import ProfilerActivity, profile

    from rca.experiments.memory.track import peak
    from rca.experiments.twin.models import transformer

    sizes = {"hidden": 128, "heads": 4, "kv_heads": 4, "ff": 344, "vocab": 512, "layers": 4, "seq": 128, "batch": 8}
    predicted = peak(question(**sizes, attention="eager"))["forward_backward"]
    model = transformer("llama", **{k: v for k, v in sizes.items() if k not in {"seq", "batch"}}, positions=128)
    weights = sum(weight.nbytes for weight in model.parameters())
    tokens = torch.zeros((8, 128), dtype=torch.int64)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as trace:
        model(input_ids=tokens, labels=tokens).loss.backward()
    live = highest = 0
    events = [event for event in trace.profiler.kineto_results.events() if event.name() == "[memory]"]
    for event in sorted(events, key=lambda item: item.start_ns()):
        live += event.nbytes()
        highest = max(highest, live)
    assert 0.95 < predicted / (weights + highest) < 1.25


def test_optimizer_state_and_sharding() -> None:
    tracked = {"forward_backward": 10.0 * GIB, "weights": 4.0 * GIB, "parameters": GIB, "trainable": GIB}
    plain = peak_of(question(), tracked)
    assert plain.static == 16 * GIB
    assert plain.total == 20 * GIB
    sharded = peak_of(question(zero_stage=3, devices=8), tracked)
    assert sharded.static == 2 * GIB
    assert peak_of(question(optimizer="sgd"), tracked).static == 8 * GIB
    assert (state_of("adamw_bnb_8bit", None), state_of("sgd", 0.9), state_of(None, None)) == (
        "8bit",
        "momentum",
        "adam",
    )
    assert usable(80 * GIB) == pytest.approx(76.2 * GIB, rel=0.001)


def test_changes_multiply_and_never_reach_zero() -> None:
    assert apply(question(batch=8), {"batch": "x0.5"}).batch == 4
    assert apply(question(batch=1), {"batch": "x0.5"}).batch == 1
    assert apply(question(), {"checkpointing": True}).checkpointing


@pytest.mark.parametrize("family", ["gpt2", "bert", "t5", "opt", "qwen2"])
def test_other_families_are_traced(torch: Any, family: str) -> None:
    from rca.experiments.memory.track import peak

    sizes = {"hidden": 256, "heads": 4, "kv_heads": 4, "ff": 512, "vocab": 1000, "layers": 6, "seq": 64, "batch": 2}
    tracked = peak(question(family=family, **sizes, compute="fp16"))
    assert tracked["forward_backward"] > 2 * tracked["weights"] > 0


def test_a_kept_graph_leaves_its_activations_and_a_number_leaves_nothing(torch: Any) -> None:
    from rca.experiments.checks.probes import kept_bytes, run_probe

    sizes = {"hidden": 128, "heads": 4, "kv_heads": 4, "ff": 344, "vocab": 512, "layers": 6, "seq": 64, "batch": 4}
    kept = kept_bytes({"question": question(**sizes).model_dump()})
    assert kept["number"] == 0
    assert kept["outputs"] == 4 * 64 * 512 * 4
    assert kept["graph"] > 5 * kept["outputs"]
    with pytest.raises(ValueError, match="kept_bytes"):
        run_probe("magic", {})

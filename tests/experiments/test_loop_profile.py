from __future__ import annotations

from typing import Any

import pytest

from rca.events import EventBuilder, EventTable
from rca.experiments.loop_profile import MOST_LENGTHS
from rca.experiments.profile import run_profile
from tests.experiments.test_profile import events, facts


@pytest.mark.parametrize(
    ("found", "word"),
    [
        ({"step__data_share": 0.5}, "waiting_for_data"),
        ({"trace__dataloader_share": 0.25}, "waiting_for_data"),
        ({"trace__syncs_per_step": 40.0}, "many_syncs"),
        ({"profile__sync_share": 0.4}, "many_syncs"),
        ({"trace__idle_share": 0.5, "trace__mean_kernel_us": 6.0}, "many_launches"),
        ({"trace__idle_share": 0.4, "trace__launches_per_step": 5000.0}, "many_launches"),
        ({"lengths__padding_share": 0.6}, "pads"),
        ({"outputs__repeat_difference": 0.2}, "outputs_vary"),
        ({"eval__repeat_differs": 0.02}, "outputs_vary"),
        ({"generation__repeats": True}, "repeats_itself"),
        ({"latency__tokens_per_s": 4.0}, "slow_generation"),
        ({"quality__lost_share": 0.2}, "loses_quality"),
        ({"oom__phase": "eval"}, "eval_out_of_memory"),
    ],
)
def test_symptoms_come_from_facts(found: dict[str, Any], word: str) -> None:
    assert word in run_profile(EventTable.from_parts([]), facts(**found)).symptoms


@pytest.mark.parametrize(
    "found",
    [
        {"step__data_share": 0.1},
        {"trace__syncs_per_step": 2.0, "trace__items_per_step": 1.0},
        {"trace__launches_per_step": 5000.0, "trace__idle_share": 0.05},
        {"lengths__padding_share": 0.2},
        {"latency__tokens_per_s": 60.0},
        {"generation__repeats": False, "outputs__repeat_difference": 1e-6},
    ],
)
def test_ordinary_figures_are_no_symptom(found: dict[str, Any]) -> None:
    assert run_profile(EventTable.from_parts([]), facts(**found)).symptoms == ()


def test_settings_of_loops() -> None:
    table = events(
        {"num_beams": 5, "do_sample": False, "repetition_penalty": 1.3, "padding": "max_length", "quantization": "awq"}
    )
    profile = run_profile(table, facts(model__tokenizer_padding_side="right", trace__items_per_step=9.0))
    assert (profile.num_beams, profile.do_sample, profile.repetition_penalty) == (5, False, 1.3)
    assert (profile.pads_to_maximum, profile.weight_bits, profile.padding_side) == (True, 4, "right")
    assert profile.syncs_per_step == 9.0


@pytest.mark.parametrize(
    ("kind", "bits"), [("int8", 8), ("bitsandbytes-4bit", 4), ("gptq", 4), ("fp8", 8), ("w2a16", 2)]
)
def test_bits_of_a_quantisation(kind: str, bits: int) -> None:
    assert run_profile(events({"quantization": kind}), {}).weight_bits == bits


def test_lengths_are_thinned_and_sorted() -> None:
    profile = run_profile(events({}, {"sequence_length": [float(value) for value in range(3000, 0, -1)]}), {})
    assert profile.lengths is not None
    assert len(profile.lengths) == MOST_LENGTHS
    assert (profile.lengths[0], profile.lengths[-1]) == (1, 3000)
    assert list(profile.lengths) == sorted(profile.lengths)


def test_a_guard_on_a_size_tells_what_changes() -> None:
    def run(*names: str) -> EventTable:
        builder = EventBuilder("train.log")
        for name in names:
            builder.add(kind="log", name=name, text=name)
        return EventTable.from_parts([builder.build()], text_sources=1)

    sizes = run_profile(run("dynamo.recompile_limit", "dynamo.guard_size_mismatch"), {})
    assert (sizes.recompile_reason, sizes.symptoms) == ("size", ("recompiles",))
    assert run_profile(run("dynamo.recompile_limit"), {}).recompile_reason == "value"
    assert run_profile(run("dynamo.recompiling"), {}).symptoms == ()

"""Each loop experiment on a run of its own cause, and on runs of the causes that are mistaken for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rca.diagnosis import Experiment
from rca.experiments.interface import RunProfile
from rca.experiments.loops.experiment import LoopExperiment
from rca.experiments.workbench import Answer, Task, Workbench
from rca.rules.load import load

RULES = load().experiments
SIZES: dict[str, Any] = {
    "family": "llama",
    "hidden_size": 2048,
    "num_layers": 22,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "intermediate_size": 5632,
    "vocab_size": 32000,
    "batch_size": 4,
    "seq_length": 1024,
    "precision": "bf16",
}


def profile(*symptoms: str, **fields: Any) -> RunProfile:
    return RunProfile(symptoms=symptoms, **fields)


WAITING = profile("waiting_for_data", data_share=0.79, step_time_s=0.4, num_workers=0, syncs_per_step=2.0)
READING = profile("many_syncs", data_share=0.02, step_time_s=0.3, num_workers=4, syncs_per_step=79.0, family="gpt2")
LAUNCHING = profile(
    "many_launches", data_share=0.03, step_time_s=0.02, num_workers=4, syncs_per_step=1.0, launches_per_step=2600.0,
    **SIZES,
)  # fmt: skip
PADDED = profile("pads", padding_share=0.71, batch_size=16, data_share=0.04)
PADDED_TO_MAXIMUM = profile("pads", padding_share=0.81, batch_size=16, pads_to_maximum=True, seq_length=512)
EVEN = profile("waiting_for_data", padding_share=0.1, batch_size=16, data_share=0.6)
SIZES_CHANGE = profile("recompiles", recompile_reason="size", padding_share=0.3)
NUMBERS_CHANGE = profile("recompiles", recompile_reason="value")
NO_CACHE = profile("tokens_slow_down", "slow_generation", use_cache=False, token_growth=4.0, num_beams=1)
BEAMS = profile("slow_generation", num_beams=8, use_cache=True)
LOOPS = profile("repeats_itself", do_sample=False)
NO_END = profile("repeats_itself", do_sample=True, temperature=0.8)
HOT = profile("loses_quality", do_sample=True, temperature=2.0, padding_side="left", weight_bits=8)
PUNISHED = profile("loses_quality", do_sample=False, repetition_penalty=2.0, padding_side="left")
TWO_BITS = profile("loses_quality", weight_bits=2, temperature=0.7, repetition_penalty=1.05, padding_side="left")
RIGHT = profile("loses_quality", padding_side="right", repetition_penalty=1.0, temperature=1.0, weight_bits=4)
DROPOUT = profile("outputs_vary", family="bert", dropout=0.1, do_sample=False)
NO_DROPOUT = profile("outputs_vary", family="llama", do_sample=False)
SAMPLED = profile("outputs_vary", family="gpt2", do_sample=True, temperature=0.8)
BATCH_TOO_LARGE = profile("out_of_memory", **{**SIZES, "batch_size": 16}, attn_implementation="sdpa")
SCORES = profile("out_of_memory", **{**SIZES, "seq_length": 8192, "batch_size": 1}, attn_implementation="eager")
MODEL_TOO_LARGE = profile(
    "out_of_memory", attn_implementation="eager",
    **{**SIZES, "batch_size": 1, "seq_length": 128, "hidden_size": 5120, "intermediate_size": 13824, "num_layers": 40,
       "num_attention_heads": 40, "num_key_value_heads": 40},
)  # fmt: skip
LEAK = profile("memory_grows", "out_of_memory", growth_gib_per_step=11.0, **SIZES)
SLOW_LEAK = profile("memory_grows", growth_gib_per_step=0.03, **SIZES)
EVALUATION = profile("out_of_memory", "eval_out_of_memory", oom_phase="eval", growth_gib_per_step=0.25, **SIZES)
EVALUATION_WITH_GRADIENTS = EVALUATION.model_copy(update={"growth_gib_per_step": 11.0})
FEW_CLASSES = profile(
    "out_of_memory", "eval_out_of_memory", oom_phase="eval", **{**SIZES, "family": "bert", "num_labels": 4}
)

# The figures of SIZES are those of a decoder of 1.1 G parameters.
CASES: list[tuple[str, str, RunProfile, str]] = [
    ("loader_cached", "itself", WAITING, "confirmed"),
    ("loader_cached", "reads by the host", READING, "refuted"),
    ("loader_cached", "launches", LAUNCHING, "refuted"),
    ("loader_workers", "itself", WAITING, "confirmed"),
    ("loader_prefetch", "itself", WAITING, "mitigates"),
    ("bucketed_batches", "itself", PADDED, "confirmed"),
    ("bucketed_batches", "waiting for data", EVEN, "refuted"),
    ("bucketed_batches", "recompilation", SIZES_CHANGE, "refuted"),
    ("pad_to_longest", "itself", PADDED_TO_MAXIMUM, "confirmed"),
    ("pad_to_longest", "padded to the longest", PADDED, "not_testable"),
    ("no_reads", "itself", READING, "confirmed"),
    ("no_reads", "waiting for data", WAITING, "refuted"),
    ("no_reads", "launches", LAUNCHING, "refuted"),
    ("graph_launches", "itself", LAUNCHING, "confirmed"),
    ("graph_launches", "reads", READING.model_copy(update={"launches_per_step": 900.0}), "refuted"),
    ("graph_launches", "waiting", WAITING.model_copy(update={"launches_per_step": 1500.0}), "refuted"),
    ("fused_optimizer", "itself", LAUNCHING.model_copy(update={"launches_per_step": 4500.0}), "confirmed"),
    ("fused_optimizer", "a plain step", LAUNCHING, "refuted"),
    ("fused_optimizer", "loops elsewhere", LAUNCHING.model_copy(update={"launches_per_step": 9e4}), "not_reproduced"),
    ("compile_dynamic", "itself", SIZES_CHANGE, "confirmed"),
    ("compile_dynamic", "waiting for data", EVEN, "not_reproduced"),
    ("compile_dynamic", "padding", PADDED, "not_reproduced"),
    ("compile_constant", "itself", NUMBERS_CHANGE, "confirmed"),
    ("compile_constant", "changing sizes", SIZES_CHANGE, "not_reproduced"),
    ("generation_cache", "itself", NO_CACHE, "confirmed"),
    ("generation_cache", "beams", BEAMS, "refuted"),
    ("one_beam", "itself", BEAMS, "confirmed"),
    ("one_beam", "no cache", NO_CACHE, "refuted"),
    ("sampled_output", "itself", LOOPS, "confirmed"),
    ("sampled_output", "no end token", NO_END, "not_reproduced"),
    ("plain_temperature", "itself", HOT, "confirmed"),
    ("plain_temperature", "two bits", TWO_BITS, "not_reproduced"),
    ("plain_temperature", "right padding", RIGHT, "not_reproduced"),
    ("no_penalty", "itself", PUNISHED, "confirmed"),
    ("no_penalty", "right padding", RIGHT, "not_reproduced"),
    ("unquantised", "itself", TWO_BITS, "confirmed"),
    ("unquantised", "temperature", HOT, "not_reproduced"),
    ("unquantised", "right padding", RIGHT, "not_reproduced"),
    ("left_padding", "itself", RIGHT, "confirmed"),
    ("left_padding", "temperature", HOT, "refuted"),
    ("left_padding", "two bits", TWO_BITS, "refuted"),
    ("evaluation_mode", "itself", DROPOUT, "confirmed"),
    ("evaluation_mode", "no dropout", NO_DROPOUT, "refuted"),
    ("evaluation_mode", "sampling", SAMPLED, "refuted"),
    ("greedy_output", "itself", SAMPLED, "confirmed"),
    ("greedy_output", "training mode", DROPOUT, "refuted"),
    ("release_graph", "itself", LEAK, "confirmed"),
    ("release_graph", "something small", SLOW_LEAK, "not_reproduced"),
    ("eval_to_host", "itself", EVALUATION, "confirmed"),
    ("eval_to_host", "a few classes", FEW_CLASSES, "refuted"),
    ("eval_no_grad", "itself", EVALUATION_WITH_GRADIENTS, "confirmed"),
    ("eval_no_grad", "outputs only", EVALUATION, "refuted"),
    ("checkpointing_on", "itself", BATCH_TOO_LARGE, "confirmed"),
    ("checkpointing_on", "a model too large", MODEL_TOO_LARGE, "refuted"),
    ("sdpa_attention", "itself", SCORES, "confirmed"),
    ("sdpa_attention", "a model too large", MODEL_TOO_LARGE, "refuted"),
]


SLOW = {"generation_cache", "one_beam", "sampled_output", "plain_temperature", "release_graph", "eval_to_host"}
SLOW |= {
    "loader_workers",
    "loader_prefetch",
    "eval_no_grad",
    "checkpointing_on",
    "sdpa_attention",
    "no_penalty",
    "unquantised",
    "left_padding",
}
"""Those that trace at full size or train the small decoder: one to four seconds each."""


WRITING = {"sampled_output", "plain_temperature", "no_penalty", "unquantised", "left_padding"}
"""Those that train the small decoder: in one process it is trained once for all of them."""


class Here(Workbench):
    """Runs the arms in the process of the test."""

    def run(self, tasks: Sequence[Task], *, deadline: float) -> list[Answer]:
        import torch

        from rca.experiments.loops.arms import run_arms

        torch.set_num_threads(1)
        return [Answer(run_arms(task.payload)) for task in tasks]


def carried_out(name: str, run: RunProfile, bench: Workbench, until: float) -> Experiment:
    used = Here() if name in WRITING else bench
    return LoopExperiment(RULES[name], run, used, until).carry_out()


@pytest.mark.parametrize(
    ("name", "run", "verdict"),
    [
        pytest.param(name, run, verdict, id=f"{name}: {what}", marks=[pytest.mark.slow] if name in SLOW else [])
        for name, what, run, verdict in CASES
    ],
)
def test_it_confirms_its_own_cause_and_no_rival(
    name: str, run: RunProfile, verdict: str, bench: Workbench, soon: float
) -> None:
    found = carried_out(name, run, bench, soon)
    assert found.verdict == verdict, found.reason
    assert found.reason.endswith(".")
    if verdict == "confirmed":
        assert found.scope.startswith("a small loop on the CPU")
        assert found.effect is not None
        assert found.effect.low <= found.effect.value <= found.effect.high


def test_a_healthy_run_is_confirmed_of_nothing(bench: Workbench, soon: float) -> None:
    healthy = RunProfile(
        family="gpt2", data_share=0.04, step_time_s=0.3, num_workers=4, syncs_per_step=2.0, launches_per_step=900.0,
        padding_share=0.12, batch_size=8, do_sample=True, temperature=0.9, use_cache=False, num_beams=4,
    )  # fmt: skip
    names = ("loader_cached", "bucketed_batches", "no_reads", "graph_launches", "compile_dynamic", "evaluation_mode")
    found = {name: carried_out(name, healthy, bench, soon).verdict for name in (*names, "greedy_output")}
    assert set(found.values()) <= {"refuted", "not_reproduced"}


def test_every_cause_that_a_loop_confirms_lists_it() -> None:
    causes = load().causes
    for rule in RULES.values():
        for cause in rule.confirms if rule.kind == "loop" else ():
            assert rule.id in causes[cause].experiments, (cause, rule.id)


@pytest.mark.parametrize("name", [rule.id for rule in RULES.values() if rule.kind == "loop"])
def test_a_run_that_says_nothing_confirms_nothing(name: str, bench: Workbench, soon: float) -> None:
    """Where the run recorded no symptom, no verdict is a confirmation, and what is missing is named."""
    if name in SLOW and not RULES[name].loop.requires:
        pytest.skip("it would run at the default sizes; the cases above cover it")
    found = carried_out(name, RunProfile(), bench, soon)
    assert found.verdict in {"not_testable", "not_reproduced", "refuted"}
    assert found.verdict != "not_testable" or "record" in found.reason


def test_no_time_is_told_in_a_sentence(bench: Workbench, soon: float) -> None:
    """Two runs of one experiment must read the same, so the figures of a timed loop stand in rows called time."""
    found = carried_out("loader_cached", WAITING, bench, soon)
    assert found.control is not None
    assert found.control.values == ()
    assert not any(character.isdigit() for character in found.reason.replace("1.3", ""))
    assert all(name.startswith("time, ") for name, _value in found.details)

"""The same experiment in another fresh child is the same byte for byte, but for the seconds."""

from __future__ import annotations

import pytest

from rca.diagnosis import Experiment
from rca.experiments.checks.experiment import ProbeExperiment
from rca.experiments.interface import RunProfile
from rca.experiments.memory.experiment import MemoryExperiment
from rca.experiments.twin.experiment import TwinExperiment
from rca.experiments.workbench import Workbench
from rca.rules.load import load

RULES = load().experiments
TWIN = RunProfile(
    family="mlp",
    optimizer="adam",
    num_labels=10,
    batch_size=32,
    precision="fp16",
    learning_rate=4e-3,
    symptoms=("nan_at_start", "skipping"),
    failure_step=0,
)
LLAMA = RunProfile(
    family="llama",
    hidden_size=1024,
    num_layers=8,
    num_attention_heads=16,
    intermediate_size=2816,
    vocab_size=32000,
    optimizer="adamw",
    batch_size=16,
    seq_length=1024,
    precision="bf16",
    device_capacity_bytes=8 * 2**30,
    symptoms=("out_of_memory",),
)
SLOWING = LLAMA.model_copy(update={"symptoms": ("tokens_slow_down",), "token_growth": 3.0})


def everything(bench: Workbench, soon: float) -> dict[str, Experiment]:
    bench.known.clear()
    return {
        "twin": TwinExperiment(RULES["loss_fp32"], TWIN, bench, soon).carry_out(),
        "memory": MemoryExperiment(RULES["half_batch"], LLAMA, bench, soon).carry_out(),
        "probe": ProbeExperiment(RULES["use_cache"], SLOWING, bench, soon).carry_out(),
    }


def test_a_second_run_in_a_fresh_child_gives_the_same_bytes(
    bench: Workbench, soon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = everything(bench, soon)
    # A child inherits the seed of hashes only if nothing sets it.
    monkeypatch.setenv("PYTHONHASHSEED", "123")
    fresh = Workbench(workers=1)
    second = everything(fresh, soon)
    fresh.close()
    for kind, experiment in first.items():
        assert experiment.verdict in {"confirmed", "refuted", "not_reproduced"}, experiment.reason
        same = {"seconds": 0.0}
        assert (
            experiment.model_copy(update=same).model_dump_json()
            == second[kind].model_copy(update=same).model_dump_json()
        ), kind

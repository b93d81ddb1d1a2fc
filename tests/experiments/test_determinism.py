"""The same experiment in another fresh child is the same byte for byte, but for the seconds."""

from __future__ import annotations

from collections.abc import Iterator

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
    learning_rate=1e-3,
    max_grad_norm=1.0,
    symptoms=("nan_abrupt",),
    failure_step=44,
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
    device_capacity_bytes=80 * 2**30,
    symptoms=("out_of_memory",),
)
SLOWING = LLAMA.model_copy(update={"symptoms": ("tokens_slow_down",), "token_growth": 3.0})


@pytest.fixture(scope="module")
def fresh() -> Iterator[Workbench]:
    """Another child, which inherits another seed for hashes and works on one job at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONHASHSEED", "123")
        made = Workbench(workers=1)
        made.warm_up()
    yield made
    made.close()


def carry_out(kind: str, bench: Workbench, soon: float) -> Experiment:
    bench.known.clear()
    if kind == "twin":
        return TwinExperiment(RULES["skip_bad_batch"], TWIN, bench, soon).carry_out()
    if kind == "memory":
        return MemoryExperiment(RULES["half_batch"], LLAMA, bench, soon).carry_out()
    return ProbeExperiment(RULES["use_cache"], SLOWING, bench, soon).carry_out()


@pytest.mark.parametrize("kind", ["twin", "probe", pytest.param("memory", marks=pytest.mark.slow)])
def test_a_second_run_in_a_fresh_child_gives_the_same_bytes(
    kind: str, bench: Workbench, fresh: Workbench, soon: float
) -> None:
    first, second = (carry_out(kind, place, soon) for place in (bench, fresh))
    assert first.verdict in {"confirmed", "refuted", "not_reproduced"}, first.reason
    same = {"seconds": 0.0}
    assert first.model_copy(update=same).model_dump_json() == second.model_copy(update=same).model_dump_json()

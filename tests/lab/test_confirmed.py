"""The faults that matter most: each is confirmed by its own experiment, and by none of its nearest rivals'."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rca.experiments.interface import RunProfile
from rca.experiments.run import close, experimenter
from rca.experiments.workbench import Workbench
from rca.lab.scenarios import profile_of, scenarios
from rca.rules.load import load

RULES = load().experiments
SCENARIOS = {item.name: item for item in scenarios(Path(__file__).parents[1] / "experiments" / "scenarios.yaml")}
TRAININGS = [
    ("lr adam mlp", "lr_tenth", ("skip_bad_batch", "clip")),
    ("half loss mlp", "loss_fp32", ("lr_tenth", "skip_bad_batch")),
    ("half activations mlp", "bf16", ("lr_tenth", "skip_bad_batch")),
    ("scale of 1e12 mlp", "scaler_start", ("lr_tenth", "skip_bad_batch")),
    ("long batches mlp", "clip", ("skip_bad_batch", "init_fix")),
    ("nan batch mlp", "skip_bad_batch", ("lr_tenth", "clip")),
    ("wide init sgd mlp", "init_fix", ("lr_tenth", "clip")),
    ("counted padding llama", "mask_padding", ("lr_x10", "skip_bad_batch")),
    ("frozen mlp", "unfreeze", ("lr_x10", "init_fix")),
    ("batch of one mlp", "batch_x4", ("lr_tenth", "unfreeze")),
]
"""Training with the fault built in, the experiment on it, those on what it is mistaken for."""
SETTINGS = [
    (RunProfile(symptoms=("waiting_for_data",), data_share=0.79, step_time_s=0.4, num_workers=0, syncs_per_step=2.0),
     "loader_cached", ("no_reads", "graph_launches")),
    (RunProfile(symptoms=("tokens_slow_down", "slow_generation"), use_cache=False, token_growth=4.0, num_beams=1),
     "generation_cache", ("one_beam", "pad_to_longest")),
    (RunProfile(symptoms=("outputs_vary",), family="bert", dropout=0.1, do_sample=False),
     "evaluation_mode", ("greedy_output", "plain_temperature")),
]  # fmt: skip
"""What a run used, the experiment on it, those on what it is mistaken for."""


@pytest.fixture(scope="module")
def bench() -> Iterator[Workbench]:
    made = Workbench()
    yield made
    made.close()
    close()


def verdict(experiment: str, profile: RunProfile) -> str:
    return experimenter(RULES[experiment], profile=profile, device="cpu", seconds=600).verdict


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "own", "rivals"), TRAININGS, ids=[row[0] for row in TRAININGS])
def test_a_training_is_confirmed_on_its_own_fault_only(
    bench: Workbench, scenario: str, own: str, rivals: tuple[str, ...]
) -> None:
    profile = profile_of(SCENARIOS[scenario], bench, until=time.monotonic() + 600)
    assert SCENARIOS[scenario].cause in RULES[own].confirms
    assert verdict(own, profile) == "confirmed"
    assert [name for name in rivals if verdict(name, profile) == "confirmed"] == []


@pytest.mark.slow
@pytest.mark.parametrize(("profile", "own", "rivals"), SETTINGS, ids=[row[1] for row in SETTINGS])
def test_settings_are_confirmed_on_their_own_fault_only(profile: RunProfile, own: str, rivals: tuple[str, ...]) -> None:
    assert verdict(own, profile) == "confirmed"
    assert [name for name in rivals if verdict(name, profile) == "confirmed"] == []

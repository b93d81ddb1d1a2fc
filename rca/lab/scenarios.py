"""Trainings with a fault built in, which stand for runs: the profile of a run without a run directory.

Every scenario is a training twice as wide as the twin. What it shows becomes the profile of a run, as if it had been
read from a run directory; experiments can then be carried out on it. Cheap, and independent of the rules for logs.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from rca.experiments.interface import RunProfile
from rca.experiments.profile import OSCILLATES
from rca.experiments.twin.arms import TrainedArm, train
from rca.experiments.twin.config import DENSE, TwinConfig, reference_of
from rca.experiments.workbench import Workbench
from rca.rules.yaml_files import read_yaml

RUN_SEED = 1000
RUN_WIDTH = 128


class Scenario(BaseModel):
    """One faulty training whose cause is known."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    cause: str
    run: dict[str, Any] = {}
    """Settings of the training that differ from a sound one."""
    profile: dict[str, Any] = {}
    """What the run directory would say beside the settings of the training."""

    @property
    def config(self) -> TwinConfig:
        """The training that stands for the real run."""
        family = self.run.get("family", "llama")
        wide = {} if family in DENSE else {"width": RUN_WIDTH, "ff": 2 * 172, "init_std": 0.02}
        return TwinConfig.model_validate({**wide, **self.run})


def scenarios(file: Path) -> tuple[Scenario, ...]:
    """Read the scenarios of a YAML file."""
    return tuple(Scenario.model_validate(row) for row in read_yaml(file))


def profile_of(scenario: Scenario, bench: Workbench, *, until: float) -> RunProfile:
    """Train the scenario once and return what its run directory would say."""
    config = scenario.config
    arm = train(bench, [("run", config)], (RUN_SEED,), reference=reference_of(config), until=until)[0]
    dense = config.family in DENSE
    settings = {
        "family": config.family,
        "hidden_size": None if dense else config.width,
        "num_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "intermediate_size": config.ff,
        "vocab_size": None if config.objective == "classes" and dense else config.vocab,
        "num_labels": config.labels if config.objective == "classes" else None,
        "seq_length": config.seq,
        "optimizer": config.optimizer,
        "momentum": config.momentum or None,
        "adam_beta1": config.beta1,
        "adam_beta2": config.beta2,
        "adam_eps": config.eps,
        "weight_decay": config.weight_decay,
        "learning_rate": config.lr,
        "warmup_steps": config.warmup,
        "batch_size": config.batch,
        "gradient_accumulation_steps": config.accumulation,
        "max_grad_norm": config.clip or None,
        "precision": config.precision,
        "symptoms": tuple(_seen(arm)),
    }
    return RunProfile.model_validate({**settings, **scenario.profile})


def _seen(arm: TrainedArm) -> Iterator[str]:
    """Words that the facts of a run directory would give: unfinished learning is no symptom there."""
    yield from (word for word in arm.words if word != "slow")
    losses = [loss for loss in arm.outcomes[0].losses if loss is not None][len(arm.outcomes[0].losses) // 2 :]
    if arm.outcomes[0].finite and len(losses) > 8:
        steps = [after - before for before, after in pairwise(losses)]
        if statistics.pstdev(steps) / 2**0.5 / statistics.fmean(losses) >= OSCILLATES:
            yield "oscillating"

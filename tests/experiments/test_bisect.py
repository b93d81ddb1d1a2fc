"""Which of the settings that differ from a healthy run make the twin fail."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from rca.diagnosis import Experiment
from rca.experiments.bisect import BISECTION, Bisection
from rca.experiments.interface import RunProfile
from rca.experiments.twin.arms import OutOfTime
from rca.experiments.twin.config import TwinConfig, reference_of
from tests.experiments.conftest import PretendBench

COMMON: dict[str, Any] = {"family": "mlp", "optimizer": "adamw", "num_labels": 10, "precision": "fp32"}
HEALTHY = RunProfile(**COMMON, learning_rate=1e-3, batch_size=8, max_grad_norm=1.0, weight_decay=0.01)
FAILED = RunProfile(
    **COMMON, learning_rate=0.5, batch_size=2, weight_decay=0.1, symptoms=("nan_abrupt",), failure_step=44
)
GOOD_LOSS = 0.1
REFERENCE_LR = reference_of(TwinConfig(family="mlp")).lr


def search(
    fails: Callable[[TwinConfig], bool], *, profile: RunProfile = FAILED, healthy: RunProfile | None = HEALTHY
) -> tuple[Experiment, PretendBench]:
    bench = PretendBench(lambda config, seed: math.nan if fails(config) else GOOD_LOSS)
    return Bisection(profile, healthy, bench, math.inf).carry_out(), bench


def test_one_culprit_is_found_and_every_set_that_was_tried_is_told() -> None:
    found, _ = search(lambda config: config.lr > 0.1)
    assert found.id == BISECTION.id
    assert found.verdict == "confirmed"
    assert found.change == "learning rate (0.001 -> 0.5)"
    assert "with only the others changed it trains" in found.reason
    assert found.table is not None
    assert found.table.rows[0][0] == "none (the healthy run)"
    assert found.table.marked is not None
    assert found.table.rows[found.table.marked][0] == found.change
    assert found.control is not None
    assert found.treatment is not None
    assert found.treatment.settings == {"lr": 0.5}


def test_settings_that_only_fail_together_are_found_together() -> None:
    found, _ = search(lambda config: config.lr > 0.1 and config.clip == 0)
    assert found.verdict == "confirmed"
    assert "learning rate (0.001 -> 0.5)" in found.change
    assert "gradient clipping (1 -> 0)" in found.change
    assert found.change.count("->") == 2
    assert "are enough" in found.reason


@pytest.mark.parametrize(
    ("fails", "verdict"),
    [(lambda config: config.lr != REFERENCE_LR, "refuted"), (lambda config: False, "not_reproduced")],
)
def test_when_the_settings_do_not_make_the_difference(fails: Callable[[TwinConfig], bool], verdict: str) -> None:
    found, _ = search(fails)
    assert found.verdict == verdict
    assert found.treatment is None


def test_nothing_to_search_is_said() -> None:
    same = HEALTHY.model_copy(update={"symptoms": ("stuck",)})
    assert search(lambda config: False, profile=same)[0].verdict == "no_op"
    assert search(lambda config: False, healthy=None)[0].verdict == "not_testable"
    assert search(lambda config: False, profile=HEALTHY)[0].verdict == "not_testable"


def test_what_only_one_run_names_and_what_was_seen_in_its_course_is_no_difference() -> None:
    seen = HEALTHY.model_copy(
        update={
            "symptoms": ("diverged",), "learning_rate_at_failure": 5e-4, "failure_step": 7, "precision": None,
            "num_layers": 4,
        }
    )  # fmt: skip
    assert search(lambda config: False, profile=seen)[0].verdict == "no_op"


def test_the_time_may_run_out_and_the_smallest_set_so_far_is_told() -> None:
    count = 0

    def fails(config: TwinConfig) -> bool:
        nonlocal count
        count += 1
        if count > 12:
            raise OutOfTime
        return config.lr > 0.1 and config.clip == 0

    found, _ = search(fails)
    assert found.verdict == "inconclusive"
    assert "smallest set so far" in found.reason

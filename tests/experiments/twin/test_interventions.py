"""Interventions of the knowledge base on real twins: confirmed on their own fault, and on no rival."""

from __future__ import annotations

from typing import Any

import pytest

from rca.experiments.interface import RunProfile
from rca.experiments.twin.experiment import TwinExperiment
from rca.experiments.workbench import Workbench
from rca.rules.load import load

pytestmark = pytest.mark.slow

SGD: dict[str, Any] = {"family": "mlp", "optimizer": "sgd", "momentum": 0.9, "learning_rate": 0.04}
ADAM: dict[str, Any] = {"family": "mlp", "optimizer": "adam", "learning_rate": 0.004}
STUCK = {"symptoms": ("stuck",)}
CLIMBS = {"symptoms": ("nan_after_growth", "norm_climbs")}
EARLY_DECAY = {"learning_rate_peak": 0.004, "lr_warmup_share": 0.0, "lr_decay": 1e-4, "lr_half_share": 0.025}
SCALED: dict[str, Any] = {"precision": "fp16", "symptoms": ("skipping",)}

CASES: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    ("clip_off", "clipped at 0.001", {**SGD, **STUCK, "max_grad_norm": 0.001}, "confirmed"),
    ("clip_off", "a rate too low", {**ADAM, **STUCK, "learning_rate": 1e-5}, "refuted"),
    ("usual_eps", "an epsilon of ten", {**ADAM, **STUCK, "adam_eps": 10.0}, "confirmed"),
    ("usual_eps", "clipped at 0.001", {**SGD, **STUCK, "max_grad_norm": 0.001}, "refuted"),
    ("lr_x10", "an epsilon of ten", {**ADAM, **STUCK, "adam_eps": 10.0}, "not_testable"),
    ("constant_rate", "a decay within three steps", {**ADAM, **STUCK, **EARLY_DECAY}, "confirmed"),
    ("constant_rate", "a rate too low", {**ADAM, **STUCK, "learning_rate": 1e-5}, "refuted"),
    ("zero_grad", "gradients that add up", {**SGD, **CLIMBS}, "confirmed"),
    ("zero_grad", "a norm that does not climb", {**SGD, "symptoms": ("nan_after_growth",)}, "not_testable"),
    ("clip", "a start far above chance", {**SGD, "symptoms": ("nan_after_growth", "starts_high")}, "not_reproduced"),
    ("more_data", "an unseen loss that rises", {**ADAM, "symptoms": ("overfits",)}, "confirmed"),
    ("relu", "six sigmoid layers", {**ADAM, "symptoms": ("vanishing",), "num_layers": 6}, "confirmed"),
    ("scaler_start", "a scale of 1e12", {**ADAM, **SCALED, "loss_scale_initial": 1.1e12}, "confirmed"),
    ("scaler_start", "the usual scale", {**ADAM, **SCALED, "loss_scale_initial": 65536.0}, "not_reproduced"),
)


@pytest.mark.parametrize(
    ("name", "run", "verdict"),
    [(name, run, verdict) for name, _, run, verdict in CASES],
    ids=[f"{name}: {what}" for name, what, _, _ in CASES],
)
def test_it_confirms_its_own_fault_only(
    name: str, run: dict[str, Any], verdict: str, bench: Workbench, soon: float
) -> None:
    found = TwinExperiment(load().experiments[name], RunProfile(**run), bench, soon).carry_out()
    assert found.verdict == verdict, found.reason

"""The course of an experiment, with a bench that only pretends to train."""

from __future__ import annotations

import math
from typing import Any

from rca.experiments.interface import RunProfile
from rca.experiments.twin.config import TwinConfig
from rca.experiments.twin.experiment import TwinExperiment
from rca.rules.schema import ExperimentRule, Prediction
from tests.experiments.conftest import PretendBench

GOOD, CHANCE = 2.0, math.log(256)
PROFILE = RunProfile(
    family="llama", hidden_size=64, vocab_size=256, learning_rate=1.0, optimizer="adamw", symptoms=("diverged",)
)


def rule(**update: Any) -> ExperimentRule:
    base: dict[str, Any] = {
        "id": "lr_tenth",
        "title": "One tenth",
        "question": "Does it recover?",
        "change": {"lr": "x0.1"},
        "treatment": "one tenth of the learning rate",
        "confirms": ("numerics.lr_too_high",),
        "says": "it recovers",
        "predicts": {"other": Prediction(confirmed=0.1, refuted=0.5, inconclusive=0.4)},
        "cost": 5,
    }
    return ExperimentRule(**{**base, **update})


def is_reference(config: TwinConfig) -> bool:
    return config.lr < 0.01 and config.bad_batch == "none" and config.frozen == "none"


def carry_out(loss: Any, soon: float, *, profile: RunProfile = PROFILE, **update: Any) -> Any:
    bench = PretendBench(loss)
    return TwinExperiment(rule(**update), profile, bench, soon).carry_out(), bench  # type: ignore[arg-type]


def test_confirmed_when_the_control_fails_and_the_treatment_learns(soon: float) -> None:
    def loss(config: TwinConfig, seed: int) -> Any:
        if is_reference(config):
            return GOOD
        return [CHANCE, *[9.0 + seed] * 59] if config.lr > 0.5 else GOOD + 0.1

    found, _ = carry_out(loss, soon)
    assert found.verdict == "confirmed"
    assert found.effect.recovered > 0.9
    assert found.control.values == (1.0, 1.0, 1.0) or min(found.control.values) >= 1.0
    assert found.treatment.settings["lr"] == 0.1
    assert set(found.treatment.settings) == {"lr"}
    assert len(found.control.curve) == 60
    assert "one tenth of the learning rate" in found.reason
    assert "tiny twin" in found.scope


def test_refuted_when_the_treatment_changes_nothing(soon: float) -> None:
    def loss(config: TwinConfig, seed: int) -> Any:
        return GOOD if is_reference(config) else [CHANCE, *[9.0 + config.lr] * 59]

    assert carry_out(loss, soon)[0].verdict == "refuted"


def test_mitigates_when_only_a_part_comes_back(soon: float) -> None:
    def loss(config: TwinConfig, seed: int) -> Any:
        if is_reference(config):
            return GOOD
        return [CHANCE, *[9.0] * 59] if config.lr > 0.5 else GOOD + 0.7 * (CHANCE - GOOD)

    assert carry_out(loss, soon)[0].verdict == "mitigates"


def test_not_reproduced_when_the_control_learns(soon: float) -> None:
    found, bench = carry_out(lambda config, seed: GOOD, soon)
    assert found.verdict == "not_reproduced"
    assert "ordinary learning" in found.reason
    assert all(config.lr != 0.1 for config in bench.asked)


def test_refuted_when_the_control_learns_and_the_change_harms(soon: float) -> None:
    def loss(config: TwinConfig, seed: int) -> Any:
        return CHANCE - 0.5 if config.lr == 0.1 else GOOD

    assert carry_out(loss, soon, when_healthy="refuted")[0].verdict == "refuted"


def test_a_fault_is_planted_only_when_the_run_itself_does_not_fail(soon: float) -> None:
    def loss(config: TwinConfig, seed: int) -> Any:
        bad = config.bad_batch != "none" and not config.skip_bad_batches
        return math.nan if bad else GOOD

    profile = PROFILE.model_copy(update={"symptoms": ("nan_abrupt",), "learning_rate": 0.004})
    plan = {"change": {"skip_bad_batches": True}, "reproduces": {"bad_batch": "nonfinite"}, "planted": "a bad batch"}
    found, _ = carry_out(loss, soon, profile=profile, **plan)
    assert found.verdict == "confirmed"
    assert "planted (a bad batch)" in found.scope
    assert "not that the run has it" in found.scope


def test_a_planted_fault_that_stays_says_nothing_of_the_run(soon: float) -> None:
    def loss(config: TwinConfig, seed: int) -> Any:
        return math.nan if config.bad_batch != "none" else GOOD

    profile = PROFILE.model_copy(update={"symptoms": ("nan_abrupt",), "learning_rate": 0.004})
    plan = {"change": {"clip": 1.0}, "reproduces": {"bad_batch": "nonfinite"}, "planted": "a bad batch"}
    found, _ = carry_out(loss, soon, profile=profile, **plan)
    assert found.verdict == "inconclusive"
    assert "says nothing of the run" in found.reason


def test_a_planted_fault_that_looks_different_does_not_count(soon: float) -> None:
    def loss(config: TwinConfig, seed: int) -> Any:
        return [math.nan] * 60 if config.bad_batch != "none" else GOOD

    profile = PROFILE.model_copy(update={"symptoms": ("nan_abrupt",), "learning_rate": 0.004})
    plan = {"change": {"skip_bad_batches": True}, "reproduces": {"bad_batch": "nonfinite"}, "planted": "a bad batch"}
    found, _ = carry_out(loss, soon, profile=profile, **plan)
    assert found.verdict == "not_reproduced"


def test_refuted_when_the_run_fails_without_what_is_suspected(soon: float) -> None:
    def loss(config: TwinConfig, seed: int) -> Any:
        return GOOD if is_reference(config) else [CHANCE, *[9.0] * 59]

    same, _ = carry_out(loss, soon, change={"frozen": "none"})
    assert same.verdict == "refuted"
    assert "already" in same.reason
    identical, _ = carry_out(loss, soon, change={"skip_bad_batches": True})
    assert identical.verdict == "refuted"
    assert "exactly as it was" in identical.reason


def test_no_verdict_about_a_symptom_that_the_run_does_not_show(soon: float) -> None:
    profile = PROFILE.model_copy(update={"symptoms": ("stuck",)})
    found, bench = carry_out(lambda config, seed: GOOD, soon, profile=profile, symptoms=("diverged",))
    assert found.verdict == "not_testable"
    assert bench.asked == []
    quiet = PROFILE.model_copy(update={"symptoms": ()})
    assert carry_out(lambda config, seed: GOOD, soon, profile=quiet)[0].verdict == "not_testable"


def test_an_excluded_run_is_not_tested(soon: float) -> None:
    profile = PROFILE.model_copy(update={"pretrained": True})
    found, _ = carry_out(lambda config, seed: GOOD, soon, profile=profile, excludes={"pretrained": True})
    assert found.verdict == "not_testable"


def test_a_broken_reference_makes_the_experiment_invalid(soon: float) -> None:
    found, _ = carry_out(lambda config, seed: CHANCE, soon)
    assert found.verdict == "invalid"


def test_a_rate_cannot_be_confirmed_when_the_width_is_unknown(soon: float) -> None:
    def loss(config: TwinConfig, seed: int) -> Any:
        if is_reference(config):
            return GOOD
        return [CHANCE, *[9.0 + seed] * 59] if config.lr > 0.5 else GOOD

    found, _ = carry_out(loss, soon, profile=PROFILE.model_copy(update={"hidden_size": None}))
    assert found.verdict == "inconclusive"
    assert "width" in found.reason


def test_an_unknown_setting_is_an_error_with_a_reason(soon: float) -> None:
    found, _ = carry_out(lambda config, seed: GOOD, soon, change={"colour": "red"})
    assert found.verdict == "error"
    assert "colour" in found.reason


def test_a_late_failure_is_not_blamed_on_a_setting(soon: float) -> None:
    late = PROFILE.model_copy(update={"steps_at_rate": 5000})
    found, bench = carry_out(lambda config, seed: GOOD, soon, profile=late)
    assert found.verdict == "not_testable"
    assert "5000 steps" in found.reason
    assert bench.asked == []


def test_a_twin_that_fails_where_the_run_did_well_for_long_proves_nothing(soon: float) -> None:
    def loss(config: TwinConfig, seed: int) -> Any:
        return GOOD if is_reference(config) else [CHANCE, *[9.0] * 59]

    late = PROFILE.model_copy(update={"steps_at_rate": 5000})
    plan = {"change": {"skip_bad_batches": True}, "reproduces": {"bad_batch": "nonfinite"}, "planted": "a bad batch"}
    assert carry_out(loss, soon, profile=late, **plan)[0].verdict == "not_testable"


def test_one_seed_that_fails_is_luck(soon: float) -> None:
    def loss(config: TwinConfig, seed: int) -> Any:
        return [CHANCE, *[9.0] * 59] if config.lr == 1.0 and seed == 1 else GOOD

    found, _ = carry_out(loss, soon)
    assert found.verdict == "not_reproduced"
    assert "luck of a seed" in found.reason


def test_words_that_the_experiment_does_not_speak_about_do_not_reproduce(soon: float) -> None:
    def loss(config: TwinConfig, seed: int) -> Any:
        return math.nan if config.bad_batch != "none" else GOOD

    profile = PROFILE.model_copy(update={"symptoms": ("nan_abrupt", "stuck"), "learning_rate": 0.004})
    plan = {"change": {"skip_bad_batches": True}, "reproduces": {"bad_batch": "nonfinite"}, "planted": "a bad batch"}
    assert carry_out(loss, soon, profile=profile, symptoms=("stuck",), **plan)[0].verdict == "not_reproduced"


def test_a_change_too_small_to_matter_is_applied_again(soon: float) -> None:
    def loss(config: TwinConfig, seed: int) -> Any:
        return GOOD if is_reference(config) or config.lr < 0.05 else [CHANCE, *[9.0 + seed] * 59]

    found, _ = carry_out(loss, soon, ladder=2)
    assert found.verdict == "confirmed"
    assert "Applied again" in found.reason
    assert carry_out(loss, soon, ladder=1)[0].verdict == "refuted"


def test_a_limit_is_measured_on_the_control(soon: float) -> None:
    def loss(config: TwinConfig, seed: int) -> Any:
        return GOOD if is_reference(config) else [CHANCE, *[9.0] * 59]

    found, _ = carry_out(loss, soon, change={"clip": "q0.9"})
    assert found.verdict == "error"
    assert "finite gradient norms" in found.reason


def test_a_start_that_the_settings_do_not_give_is_planted_even_where_they_learn_badly(soon: float) -> None:
    profile = PROFILE.model_copy(update={"symptoms": ("slow", "starts_high"), "learning_rate": 0.002})
    slow = [CHANCE - step * 0.01 for step in range(60)]

    def loss(config: TwinConfig, seed: int) -> Any:
        if config.init_factor > 1:
            return [8 * CHANCE - 0.1 * step for step in range(60)]
        return GOOD if config.lr == 0.004 else slow

    update = {"change": {"init_factor": 1.0}, "reproduces": {"init_factor": 30.0}, "planted": "wide weights"}
    found, bench = carry_out(loss, soon, profile=profile, **update)
    assert any(config.init_factor == 30.0 for config in bench.asked)
    assert "planted" in found.scope

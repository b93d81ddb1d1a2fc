"""Scripts of twin experiments: short, clean, and training exactly what the arms trained."""

from __future__ import annotations

import contextlib
import io
import math
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rca.errors import ExperimentError
from rca.experiments.interface import RunProfile
from rca.experiments.repro import twin as generator
from rca.experiments.repro.twin import KNOWN, twin_program
from rca.experiments.twin.config import DENSE, FAMILIES, TwinConfig, changed, differences, reference_of, twin_of
from rca.rules.load import load
from rca.rules.schema import ExperimentRule

ROOT = Path(__file__).resolve().parents[3]
RULES = {name: rule for name, rule in load().experiments.items() if rule.kind == "twin"}
SMALL: dict[str, Any] = {"steps": 4, "batch": 2, "vocab": 48, "seq": 8, "bad_step": 2}
RICH: dict[str, Any] = {"warmup": 2, "decay": 0.5, "clip": 0.5, "accumulation": 2, "weight_decay": 0.01, "seed": 7}
LLAMA = {"family": "llama", "width": 32, "ff": 48, "lr_factor": 2.0, "init_std": 0.03}


def arms(config: TwinConfig, change: Mapping[str, Any]) -> dict[str, TwinConfig]:
    return {"control": config, "treatment": changed(config, change), "reference": reference_of(config)}


def loaded(program: str) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "repro"}
    exec(compile(program, "repro.py", "exec"), space)
    return space


def assert_same(configs: Mapping[str, TwinConfig], *, seed: int = 1) -> None:
    """The program trains, bit by bit, what the twin trains."""
    from rca.experiments.twin.train import train_arm

    program = loaded(twin_program(configs, seeds=(0, 1), title="t"))
    for name, config in configs.items():
        arm = train_arm(config, seed)
        losses, clean = program["train"](program[name.upper()], seed)
        kept = [loss for loss in arm["losses"] if loss is not None]
        losses += [math.nan] * (len(kept) - len(losses))
        assert repr(losses) == repr(kept), name
        assert repr(clean) == repr(arm["eval_loss"]), name


def case_of(rule: ExperimentRule, family: str, precision: str, **update: Any) -> dict[str, TwinConfig]:
    """The arms of an experiment on a run that left all its settings."""
    profile = RunProfile(
        family=family,
        hidden_size=None if family in DENSE else 512,
        learning_rate=0.01,
        optimizer="sgd" if family == "cnn" else "adamw",
        momentum=0.9,
        batch_size=4,
        gradient_accumulation_steps=2,
        warmup_steps=10,
        failure_step=100,
        max_grad_norm=1.0,
        precision=precision,  # type: ignore[arg-type]
        num_labels=10,
        dropout=0.1,
        activation="gelu",
        norm_eps=1e-5,
        seed=3,
    )
    control = changed(twin_of(profile).config, {**rule.reproduces, **update})
    quantile = {name: 0.5 if str(value).startswith("q") else value for name, value in rule.change.items()}
    return arms(control, quantile)


@pytest.mark.parametrize(
    ("family", "precision"),
    [("llama", "fp32"), ("gpt2", "fp16"), ("bert", "bf16"), ("t5", "fp32"), ("cnn", "fp16"), ("mlp", "fp32")],
)
def test_a_script_trains_what_the_arms_trained(torch: Any, family: str, precision: str) -> None:
    sizes = LLAMA if family not in DENSE else {"dropout": 0.1, "activation": "silu", "norm_eps": 1e-4}
    config = TwinConfig(**{**SMALL, **RICH, **sizes, "family": family, "precision": precision, "lr": 0.01})
    assert_same(arms(config, {"lr": "x0.1"}))


FAULTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "loss",
        {"loss": "exp_log", "loss_dtype": "low", "logit_offset": 12.0, "precision": "fp16"},
        {"loss_dtype": "fp32"},
    ),
    ("bad batch", {"bad_batch": "nonfinite", "steps": 9}, {"skip_bad_batches": True}),
    ("unlabelled", {"bad_batch": "unlabelled", "bad_every": 1, "accumulation": 2}, {"skip_bad_batches": True}),
    ("outliers", {"bad_batch": "long", "bad_every": 1}, {"truncate": True}),
    ("noise", {"bad_batch": "random", "accumulation": 2}, {"bad_batch": "none"}),
    ("frozen", {"frozen": "body", "lr_factor": 2.0}, {"frozen": "none"}),
    ("nothing trained", {"frozen": "all", "precision": "fp16"}, {"frozen": "none"}),
    ("sum", {"loss_reduction": "sum", "clip": 1.0}, {"loss_reduction": "mean"}),
    ("few samples", {"samples": 4, "dropout": 0.2}, {"samples": 0}),
    ("gradients kept", {"zero_grad": False, "loss_factor": 100.0}, {"zero_grad": True}),
    ("micro-batches", {"accumulation": 2, "accumulation_mean": False}, {"accumulation_mean": True}),
    ("scaler", {"precision": "fp16", "init_scale": 2.0**20, "growth_interval": 1}, {"scaler": False}),
    ("gain", {"precision": "fp16", "activation_gain": 1e5}, {"precision": "fp32"}),
    ("depth", {"layers": 6, "activation": "sigmoid"}, {"residual": True}),
    ("optimizer", {"optimizer": "rmsprop", "lr": 0.001}, {"optimizer": "sgd"}),
    ("labels", {"masking": "all"}, {"masking": "right"}),
    ("hopeless", {"lr": 1e9, "optimizer": "sgd", "steps": 9}, {"lr": 0.1}),
]


@pytest.mark.parametrize(("fault", "change"), [case[1:] for case in FAULTS], ids=[case[0] for case in FAULTS])
def test_every_fault_is_in_its_script(torch: Any, fault: dict[str, Any], change: dict[str, Any]) -> None:
    assert_same(arms(TwinConfig(**{**SMALL, "family": "mlp", **fault}), change))


@pytest.mark.parametrize(
    ("fault", "change"),
    [
        ({"bad_batch": "nonfinite", "precision": "fp16"}, {"skip_bad_batches": True}),
        ({"padding": 0.5, "masking": "none", "label_offset": 2}, {"masking": "right"}),
        ({"activation_gain": 1e5, "precision": "bf16", "samples": 4}, {"attention": "sdpa"}),
        ({"activation": "relu", "norm_eps": 1e-3, "tied": True, "init_factor": 3.0}, {"init_factor": 1.0}),
    ],
    ids=["bad batch", "padding", "gain", "model"],
)
def test_faults_of_token_streams_are_in_their_script(torch: Any, fault: dict[str, Any], change: dict[str, Any]) -> None:
    assert_same(arms(TwinConfig(**{**SMALL, **LLAMA, **fault}), change))


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_half_precision_of_every_class_is_that_of_the_twin(torch: Any, family: str) -> None:
    config = TwinConfig(**{**SMALL, "family": family, "precision": "fp16", "steps": 2})
    assert_same(arms(config, {"precision": "bf16"}))


BY_TURNS = [("llama", "fp32"), ("mlp", "fp16")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "family", "precision"),
    [(rule, *BY_TURNS[number % 2]) for number, rule in enumerate(RULES.values())],
    ids=RULES,
)
def test_a_script_of_every_experiment_trains_what_the_arms_trained(
    torch: Any, rule: ExperimentRule, family: str, precision: str
) -> None:
    small = {name: value for name, value in SMALL.items() if name not in {"seq", "vocab"}}
    assert_same(case_of(rule, family, precision, **small))


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A script of every experiment for runs of five classes, as files."""
    folder = tmp_path_factory.mktemp("programs")
    classes = [("llama", "fp16"), ("t5", "fp16"), ("bert", "fp32"), ("cnn", "bf16"), ("mlp", "fp32")]
    for family, precision in classes:
        for name, rule in RULES.items():
            told = [("Question", rule.question), ("Found", "word " * 80), ("Expect", "figure " * 60)]
            text = twin_program(case_of(rule, family, precision), seeds=(0, 1, 2), title=rule.title, parts=told)
            (folder / f"{family}_{name}.py").write_text(text, encoding="utf-8")
    return folder


def test_every_experiment_has_a_short_script(programs: Path) -> None:
    assert len(list(programs.iterdir())) == 5 * len(RULES)
    for file in programs.iterdir():
        text = file.read_text(encoding="utf-8")
        assert text.count("\n") < 150, file.name
        assert len(text.encode()) <= 25_000, file.name
        assert "import rca" not in text
        assert "from rca" not in text


def test_scripts_are_clean_and_formatted(programs: Path) -> None:
    settings = ["--config", str(ROOT / "pyproject.toml"), "--no-cache", str(programs)]
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(["ruff", *command, *settings], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_control_and_treatment_differ_in_one_setting(torch: Any) -> None:
    for name, rule in RULES.items():
        configs = case_of(rule, "mlp", "fp16")
        program = loaded(twin_program(configs, seeds=(0,), title="t"))
        changes = differences(configs["control"], configs["treatment"])
        found = {key for key, value in program["TREATMENT"].items() if program["CONTROL"].get(key) != value}
        assert found == set(changes), name
        assert len(changes) <= 1, name


def test_a_script_prints_what_each_arm_lost(torch: Any, tmp_path: Path) -> None:
    from rca.experiments.judges import lost_gap
    from rca.experiments.twin.train import train_arm

    configs = arms(TwinConfig(family="mlp", lr=3.0, steps=12, width=16), {"lr": "x0.001"})
    space: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(twin_program(configs, seeds=(0, 1), title="t"), "repro.py", "exec"), space)
    lines = printed.getvalue().splitlines()
    assert len(lines) == 6
    best = train_arm(configs["reference"], 0)
    for line, name in zip(lines, ("control", "treatment", "reference"), strict=False):
        arm = train_arm(configs[name], 0)
        lost = lost_gap(arm["eval_loss"], best["eval_loss"], best["chance"])
        assert line.startswith(f"seed 0 {name}")
        assert line.endswith(f"share of the learnable gap lost {lost:.4f}")


def test_a_setting_that_no_script_can_show_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "KNOWN", KNOWN - {"padding"})
    with pytest.raises(ExperimentError, match="`padding`"):
        twin_program(arms(TwinConfig(padding=0.5), {"lr": "x0.1"}), seeds=(0,), title="t")


def test_arms_of_different_sizes_have_no_script() -> None:
    with pytest.raises(ExperimentError, match="`vocab`"):
        twin_program(arms(TwinConfig(), {"vocab": 64}), seeds=(0,), title="t")


def test_every_setting_of_the_twin_is_known() -> None:
    assert set(TwinConfig.model_fields) == KNOWN


def test_a_program_needs_only_torch_and_transformers() -> None:
    text = twin_program(arms(TwinConfig(), {"lr": "x0.1"}), seeds=(0,), title="t")
    imported = {line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))}
    assert imported <= {"torch", "transformers", "numpy", *sys.stdlib_module_names}
    assert set(FAMILIES) >= {"llama", "gpt2", "bert", "t5", "cnn", "mlp"}

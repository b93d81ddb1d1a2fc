"""Scripts of memory arithmetic: they trace at full depth what the report continued from two small ones."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rca.errors import ExperimentError
from rca.experiments.memory.arithmetic import peak_of
from rca.experiments.memory.question import MemoryQuestion, apply, traced
from rca.experiments.repro.memory import kept_program, memory_program
from rca.experiments.repro.probe import token_cost_program
from rca.experiments.twin.config import TwinConfig

ROOT = Path(__file__).resolve().parents[3]

SMALL: dict[str, Any] = {
    "family": "llama", "hidden": 64, "layers": 3, "heads": 4, "kv_heads": 2, "ff": 128, "vocab": 500,
    "batch": 8, "seq": 64,
}  # fmt: skip
CASES: dict[str, dict[str, Any]] = {
    "fp32": {},
    "autocast": {"family": "gpt2", "kv_heads": 4, "compute": "bf16", "attention": "eager"},
    "adapters": {"weights": "bf16", "compute": "bf16", "lora_r": 4, "checkpointing": True},
    "sequence": {"family": "t5", "optimizer": "sgd"},
    "devices": {"family": "bert", "devices": 4, "optimizer": "8bit"},
    "evaluation": {"task": "evaluate"},
}


def space_of(program: str) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "repro"}
    exec(compile(program, "repro.py", "exec"), space)
    return space


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=name, marks=() if name == "autocast" else pytest.mark.slow) for name, case in CASES.items()],
)
def test_both_peaks_are_those_of_the_report(torch: Any, case: dict[str, Any]) -> None:
    from rca.experiments.memory.track import peak

    control = MemoryQuestion(**{**SMALL, **case})
    treatment = apply(control, {"batch": "x0.5"})
    space = space_of(memory_program(control, treatment, capacity=2.0**30, title="t"))
    for name, question in (("CONTROL", control), ("TREATMENT", treatment)):
        told = peak_of(question, peak(traced(question))).total
        assert space["peak_of"](SimpleNamespace(**space[name])) == pytest.approx(told, rel=0.01)
    assert {key for key in space["CONTROL"] if space["CONTROL"][key] != space["TREATMENT"][key]} == {"batch"}


def test_programs_are_short_clean_and_formatted(tmp_path: Path) -> None:
    for name, case in CASES.items():
        control = MemoryQuestion(**{**SMALL, **case})
        parts = [("Question", "word " * 60)] * 4
        treatment = apply(control, {"batch": "x0.5"})
        text = memory_program(control, treatment, capacity=8.5 * 2**30, title=name, parts=parts)
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        if name != "evaluation":
            kept = kept_program(control, observed=0.1, title=name, parts=parts)
            (tmp_path / f"{name}_kept.py").write_text(kept, encoding="utf-8")
    (tmp_path / "token.py").write_text(token_cost_program(TwinConfig(), title="t"), encoding="utf-8")
    assert all(file.read_text(encoding="utf-8").count("\n") < 150 for file in tmp_path.iterdir())
    settings = ["--config", str(ROOT / "pyproject.toml"), "--no-cache", str(tmp_path)]
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(["ruff", *command, *settings], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_kept_bytes_are_those_of_the_check(torch: Any) -> None:
    from rca.experiments.checks.kept_bytes import kept_bytes

    question = MemoryQuestion(**SMALL)
    told = kept_bytes({"question": question.model_dump(mode="json")})
    space = space_of(kept_program(question, observed=0.5, title="t"))
    for keep, size in told.items():
        assert space["growth_of"](SimpleNamespace(**space["SIZES"]), keep) == pytest.approx(size, rel=0.01)
    assert space["OBSERVED"] == 0.5


@pytest.mark.parametrize(
    ("update", "why"),
    [
        ({"zero_stage": 3, "devices": 8}, "sharded"),
        ({"weights": "nf4"}, "packed"),
        ({"task": "generate"}, "cache"),
        ({"accumulation": 4}, "micro-batches"),
    ],
)
def test_arithmetic_beside_the_trace_has_no_script(update: dict[str, Any], why: str) -> None:
    question = MemoryQuestion(**{**SMALL, **update})
    with pytest.raises(ExperimentError, match=why):
        memory_program(question, question, capacity=0.0, title="t")


def test_arms_with_other_models_have_no_script() -> None:
    question = MemoryQuestion(**SMALL)
    with pytest.raises(ExperimentError, match="`hidden`"):
        memory_program(question, apply(question, {"hidden": 32}), capacity=0.0, title="t")

"""The programs of loop experiments: short, free of this package, and with the figures of the report."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from rca.experiments.interface import RunProfile
from rca.experiments.loops.config import LoopConfig, changed, loop_of
from rca.experiments.loops.script import program
from rca.rules.load import load

RULES = load().experiments
RUNS: dict[str, tuple[RunProfile, str]] = {
    "loader_cached": (RunProfile(data_share=0.79), "wait_share"),
    "bucketed_batches": (RunProfile(padding_share=0.71, batch_size=16), "'pad_share': 0.13"),
    "no_reads": (RunProfile(family="gpt2", syncs_per_step=79.0), "'syncs_per_step': 2.0"),
    "compile_constant": (RunProfile(recompile_reason="value"), "'compilations': 1.0"),
    "one_beam": (RunProfile(num_beams=2), "'gflops'"),
    "evaluation_mode": (RunProfile(family="bert", dropout=0.1), "'varying': 0.0"),
}


def written(name: str, run: RunProfile, **figures: float) -> str:
    rule = RULES[name]
    assert rule.loop is not None
    own, setting = loop_of(run, rule.loop)
    control = changed(own, rule.reproduces)
    arms: dict[str, LoopConfig] = {"control": control, "treatment": changed(control, rule.change)}
    return program(rule, arms, setting, said="It is what it is.", figures=figures)


@pytest.mark.parametrize("name", RUNS)
def test_it_is_short_and_needs_nothing_of_this_package(name: str) -> None:
    text = written(name, RUNS[name][0], dropout=0.1)
    assert 40 < len(text.splitlines()) <= 150
    assert "rca." not in text.split('"""', 2)[2]
    assert "/" not in text.split("Needs: ", 1)[1].splitlines()[0]
    table = ast.parse(text).body
    arms = next(
        ast.literal_eval(node.value) for node in table if isinstance(node, ast.Assign) and _name(node) == "ARMS"
    )
    control, treatment = arms.values()
    assert sum(control[key] != treatment[key] for key in control) == 1


def _name(node: ast.Assign) -> str:
    return getattr(node.targets[0], "id", "")


def test_there_is_none_where_it_would_need_the_whole_package() -> None:
    assert written("sampled_output", RunProfile(do_sample=False)) == ""
    assert written("evaluation_mode", RunProfile(family="t5")) == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_it_runs_and_shows_the_figures(name: str, tmp_path: Path) -> None:
    run, wanted = RUNS[name]
    file = tmp_path / "repro.py"
    file.write_text(written(name, run, dropout=0.1), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-I", str(file)], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "control" in done.stdout
    assert wanted in next(line for line in done.stdout.splitlines() if line.startswith("treatment"))

"""Completion as the shells do it: the scripts of click, run by bash, zsh and fish themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ASKED = {
    "": {"analyze", "explain", "lab"},
    "explain numerics.lr_too": {"numerics.lr_too_high"},
    "analyze run --experiments lr_te": {"lr_tenth"},
    "analyze run --disable cuda.oom_l": {"cuda.oom_legacy"},
    "analyze run -f ji": {"jira"},
    "analyze run --lang z": {"zh"},
    "lab make fp16_ov": {"fp16_overflow"},
    "report runs_of_n": {"runs_of_november"},
    "analyze run --basel": {"--baseline"},
}
"""What was typed behind `rca` -> what is among the answers."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with `rca` on its path and a folder to complete."""
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "rca"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m rca "$@"\n')
    command.chmod(0o755)
    (tmp_path / "runs_of_november").mkdir()
    return tmp_path


def shell(name: str, script: str, place: Path, *options: str) -> str:
    """What a shell prints of a script."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    root = Path(__file__).resolve().parents[1]
    environment = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(root)}
    environment |= {"HOME": str(place), "ZDOTDIR": str(place), "XDG_CONFIG_HOME": str(place)}
    done = subprocess.run([found, *options, "-c", script], cwd=place, env=environment, capture_output=True, text=True,
                          timeout=120, check=False)  # fmt: skip
    assert done.stderr == ""
    return done.stdout


def test_bash(place: Path) -> None:
    lines = ['eval "$(_RCA_COMPLETE=bash_source rca)"', "compopt() { :; }"]
    for asked in ASKED:
        words = ["rca", *asked.split(" ")]
        shown = " ".join(f"'{word}'" for word in words)
        lines.append(f"COMP_WORDS=({shown}); COMP_CWORD={len(words) - 1}; COMPREPLY=(); _rca_completion rca")
        lines.append('compgen -f -- "${COMP_WORDS[COMP_CWORD]}" | while read f; do echo "file:$f"; done')
        lines.append('echo "${COMPREPLY[@]}"; echo ---')
    answers = shell("bash", "\n".join(lines), place, "--norc").split("---\n")
    for (asked, wanted), answer in zip(ASKED.items(), answers[:-1], strict=True):
        assert wanted <= set(answer.replace("file:", "").split()), asked


def test_fish(place: Path) -> None:
    lines = ["_RCA_COMPLETE=fish_source rca | source"]
    for asked in ASKED:
        lines += [f"complete --do-complete 'rca {asked}'", "echo ---"]
    answers = shell("fish", "\n".join(lines), place, "--no-config").split("---\n")
    for (asked, wanted), answer in zip(ASKED.items(), answers[:-1], strict=True):
        assert wanted <= {line.split("\t")[0].rstrip("/") for line in answer.splitlines()}, asked


def test_zsh(place: Path) -> None:
    lines = [
        "autoload -Uz compinit && compinit -D -u",
        'eval "$(_RCA_COMPLETE=zsh_source rca)"',
        # Outside the line editor the builtins of completion do not run: what they are given is what would be offered.
        "compadd() { [[ $1 == -U ]] && shift; print -rl -- ${@:#-*}; for name in $@; do print -rl -- ${(P)name}; done }",  # noqa: E501
        "_describe() { for name in $@; do [[ $name == -* ]] || print -rl -- ${(P)name} 2>/dev/null; done }",
        "_path_files() { print -rl -- ${words[CURRENT]}*(N) }",
    ]
    for asked in ASKED:
        words = " ".join(f"'{word}'" for word in ["rca", *asked.split(" ")])
        lines += [f"words=({words}); CURRENT=${{#words}}; _rca_completion", "print -r -- ---"]
    answers = shell("zsh", "\n".join(lines), place, "-f").split("---\n")
    for (asked, wanted), answer in zip(ASKED.items(), answers[:-1], strict=True):
        assert wanted <= {line.split(":")[0] for line in answer.splitlines()}, (asked, answer)


def test_completing_parses_no_rule_and_loads_no_pydantic(tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom rca.cli import cli\n"
        "os.environ.update(_RCA_COMPLETE='bash_complete', COMP_WORDS='rca explain numerics.', COMP_CWORD='2')\n"
        "try:\n    cli.main([], prog_name='rca')\nexcept SystemExit:\n    pass\n"
        "print(sorted({'yaml', 'pydantic', 'pandas', 'torch', 're2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "numerics.lr_too_high" in done.stdout
    assert done.stdout.strip().endswith("[]")

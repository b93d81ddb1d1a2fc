"""The page that teaches how to write a rule: every command in it is run as it stands, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
import yaml

from rca.cli_rules import rules
from rca.rules.check_signatures import signature_failures
from rca.rules.schema import Case, ExperimentRule, SignatureFile
from rca.rules.synthetic import expand


@pytest.fixture(scope="module")
def text(root) -> str:
    return (root / "knowledge" / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_worked_rule_is_written_checked_tested_and_comes_first(text, tmp_path) -> None:
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "rca"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rca "$@"\n')
    command.chmod(0o755)
    work = tmp_path / "empty"
    work.mkdir()
    said = []
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        environ = {**os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
        shell = ["bash", "-ec", block]
        done = subprocess.run(shell, cwd=work, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        said.append(done.stdout)
    assert said[0].startswith("code.user_exception")
    assert "wrote team/acme/lease_expired.yaml" in said[1]
    assert "no error, 0 warnings" in said[2]
    assert "all 3 cases passed" in said[2]
    assert "error[acme.lease_expired]" in said[2]
    assert "The cache took the lease of n17 away after 30 s." in " ".join(said[2].split())
    assert said[3].startswith("acme.lease_expired")


EXPERIMENT = {"id": "x", "title": "-", "question": "-", "confirms": [], "says": "-", "predicts": {}, "cost": 1}


def test_the_other_examples_are_valid(text) -> None:
    blocks = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", text, re.M | re.S)]
    series, signatures, loop = blocks
    assert expand(Case.model_validate(series).series)
    assert ExperimentRule.model_validate({**EXPERIMENT, **loop}).loop is not None
    (signature,) = SignatureFile.model_validate(signatures).signatures
    assert signature_failures(signature) == []


def test_every_command_and_every_word_of_a_curve_is_told(text) -> None:
    for name, command in rules.commands.items():
        assert f"`rca rules {name}" in text
        assert command.help
    for words in re.findall(r"`((?:constant|decays|rises|oscillates) [^`]+)`", text):
        plain = words.replace("[", "").replace("]", "").replace("X", "3").replace("A", "4").replace("B", "2")
        assert expand({"step": "0..9", "loss": plain.replace("S", "0").replace("N", "4")})

"""Scripts of checks."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

import pytest

from rca.diagnosis import Experiment
from rca.errors import ExperimentError
from rca.experiments.checks import token_cost
from rca.experiments.interface import RunProfile
from rca.experiments.repro.probe import LONG, token_cost_program
from rca.experiments.repro.script import with_script
from rca.experiments.twin.config import TwinConfig
from rca.rules.load import load


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_the_cost_of_a_token_is_that_of_the_check(torch: Any, family: str) -> None:
    config = TwinConfig(family=family, width=32, ff=48, vocab=64)
    told = token_cost.token_cost({"twin": config.model_dump(mode="json")})
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(token_cost_program(config, title="t"), "repro.py", "exec"), {"__name__": "__main__"})
    shown = [float(value) for value in re.findall(r"costs ([\d.]+) times", printed.getvalue())]
    assert shown == [round(told["without"], 2), round(told["with"], 2)]
    assert LONG == token_cost._LONG


def test_an_encoder_has_no_tokens_to_count() -> None:
    with pytest.raises(ExperimentError, match="token by token"):
        token_cost_program(TwinConfig(family="bert"), title="t")


def test_checks_of_files_say_how_to_repeat_them() -> None:
    rules = load().experiments
    files = [rule for rule in rules.values() if rule.kind == "probe" and rule.needs]
    assert files
    for rule in files:
        found = Experiment(id=rule.id, title=rule.title, question=rule.question, prediction="p", verdict="confirmed")
        details = with_script(found, rule, RunProfile()).details
        assert details[-1] == (
            "script that repeats it",
            f"none: it reads the run's own files; `rca experiment {rule.id} RUN_DIR` repeats it",
        )

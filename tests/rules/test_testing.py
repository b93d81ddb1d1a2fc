"""Cases beside a cause: what comes first, and which rival must."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rca.errors import KnowledgeError
from rca.rules.load import Knowledge
from rca.rules.schema import Cause
from rca.rules.testing import Judged, load_cases, run_cases

CAUSE = Cause(id="acme.lease", title="Lease", sentence="The lease was lost.", summary="Lost.", prior=0.01)
CASES = """
fires:
  - log: "lease lost"
silent:
  - {name: rival, log: "lease renewed", why: the same words, first: acme.clock}
"""


def _results(folder: Path, *, fires: str, silent: str, cases: str = CASES) -> list[tuple[bool, str]]:
    file = folder / "lease.yaml"
    file.with_name("lease.cases.yaml").write_text(cases, encoding="utf-8")
    knowledge = Knowledge(causes={CAUSE.id: CAUSE}, files={CAUSE.id: file})

    def judge(run: Path) -> Judged:
        first = fires if "lost" in (run / "train.log").read_text(encoding="utf-8") else silent
        return Judged([first, "unknown"], met=lambda cause: ["lost"])

    return [(result.passed, result.why) for result in run_cases(knowledge, [CAUSE], judge)]


def test_a_silent_case_that_names_its_rival_wants_it_first(tmp_path: Path) -> None:
    right = _results(tmp_path, fires="acme.lease", silent="acme.clock")
    wrong = _results(tmp_path, fires="acme.lease", silent="acme.other")
    assert [passed for passed, _ in right] == [True, True]
    assert wrong[1] == (False, "first is acme.other instead of acme.clock, then unknown")


def test_a_silent_case_fails_when_the_cause_itself_comes_first(tmp_path: Path) -> None:
    assert _results(tmp_path, fires="acme.lease", silent="acme.lease")[1][0] is False


def test_a_case_fails_when_a_rule_that_it_shows_is_not_met(tmp_path: Path) -> None:
    cases = CASES.replace('"lease lost"', '"lease lost"\n    shows: [lost, gone]')
    results = _results(tmp_path, fires="acme.lease", silent="acme.clock", cases=cases)
    assert results == [(False, "the rule 'gone' is not met"), (True, "first is acme.clock")]


def test_a_case_that_fires_names_no_rival(tmp_path: Path) -> None:
    file = tmp_path / "lease.cases.yaml"
    file.write_text(CASES.replace('"lease lost"', '"lease lost"\n    first: acme.clock'), encoding="utf-8")
    with pytest.raises(KnowledgeError, match="`first:` names the rival of a silent case"):
        load_cases(file)


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("{name: empty}", "a case gives at least one of log, series, config, packages, run"),
        ("{log: {../a.log: x}}", "the file name '../a.log' under `log` leaves the run directory"),
        ("{name: odd, series: {loss: wanders}}", "the case 'odd': loss: 'wanders' is not a curve; write `constant X`"),
        ("{run: nowhere}", "`run: nowhere` names no folder beside this file"),
        ("{run: ., baseline: {log: a}}", "`baseline:` goes with a case that is written out, not with `run:`"),
        ("{lgo: x}", "unknown key 'lgo'; did you mean 'log'?"),
    ],
)
def test_a_case_that_makes_no_run_names_its_file(tmp_path: Path, case: str, sentence: str) -> None:
    file = tmp_path / "lease.yaml"
    file.with_name("lease.cases.yaml").write_text(f"fires: [{case}]\nsilent: [{{log: a, why: b}}]\n", encoding="utf-8")
    knowledge = Knowledge(causes={CAUSE.id: CAUSE}, files={CAUSE.id: file})
    with pytest.raises(KnowledgeError, match=re.escape(sentence)) as caught:
        list(run_cases(knowledge, [CAUSE], lambda run: Judged(["unknown"])))
    assert caught.value.file == file.with_name("lease.cases.yaml")

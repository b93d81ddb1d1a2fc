"""Every secret in every place of a run directory, and none in anything that is written or sent."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rca.cli_attach import shown
from rca.diagnosis import Diagnosis
from rca.pipeline import Analysis, Options, examine
from rca.redact import redact_diagnosis, redactor_for
from rca.report.registry import FORMATS
from rca.report.scripts import scripts
from rca.rules.load import load
from rca.tickets.letter import letter
from rca.tickets.target import parsed, service_for

from .corpus import shapes
from .planted import RUN_NAME, plant, plant_unknown, planted

_TICKETS = ("github:acme/train#12", "gitlab:acme/ml/train#3", "jira:OPS-7", "webhook:http://127.0.0.1:9/x")


def analysed(run: Path) -> Analysis:
    return examine(run, load(()), options=Options(experiments="none"))


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    return analysed(plant(tmp_path_factory.mktemp("planted")))


@pytest.fixture(scope="module")
def unknown(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    return analysed(plant_unknown(tmp_path_factory.mktemp("planted")))


def left_in(text: str) -> list[str]:
    """Names of the secrets that a text shows, whole or a long end of them."""
    text = text.replace("\\/", "/")
    found = []
    for name, secret in planted().items():
        forms = {secret, json.dumps(secret)[1:-1], secret.replace("&", "&amp;"), re.sub(r"([-+.\\])", r"\\\1", secret)}
        forms |= {secret[-14:]} if len(secret) >= 24 else set()
        found += [name] if any(form in text for form in forms) else []
    return found


@pytest.mark.slow
def test_the_places_are_places_from_which_text_reaches_a_report(tmp_path: Path) -> None:
    bare = examine(plant(tmp_path), load(()), options=Options(experiments="none", redact="none"))
    seen = left_in(bare.diagnosis.model_dump_json())
    assert len(seen) >= 0.95 * len(planted())
    assert {"run name", "hub_token", "db_password", "argument"} <= set(seen)


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_no_format_shows_a_secret_a_person_or_a_machine(form: str, known: Analysis, unknown: Analysis) -> None:
    for analysis in (known, unknown):
        assert left_in(FORMATS[form].render(analysis.diagnosis)) == []


def test_the_unknown_run_shows_its_odd_lines_and_a_draft(unknown: Analysis) -> None:
    found = unknown.diagnosis.unexplained
    assert found is not None
    assert len(found.lines) >= 3
    assert sum(line.text.count("<secret>") for line in found.lines) >= 20
    assert left_in(found.model_dump_json()) == []


@pytest.mark.slow
def test_strict_shows_no_name_of_a_run_and_no_folder(known: Analysis, tmp_path: Path) -> None:
    bare = examine(plant(tmp_path), load(()), options=Options(experiments="none", redact="strict")).diagnosis
    text = bare.model_dump_json()
    assert left_in(text) == []
    assert RUN_NAME.partition("-")[0] + "-" not in text
    assert str(tmp_path) not in text
    assert "wandb/run-20260301" not in text
    assert bare.redaction.counts["path"] > 0
    assert known.diagnosis.verdict.cause == bare.verdict.cause


def test_saved_events_hold_the_same_placeholders(known: Analysis) -> None:
    table = known.shown_events().table
    assert left_in("\n".join(map(str, table.to_pylist()))) == []
    assert table.schema == known.events.table.schema
    assert table.num_rows == known.events.table.num_rows
    machine = re.compile(r"<host-\d+>")
    in_report = set(machine.findall(known.diagnosis.model_dump_json()))
    assert in_report & set(machine.findall(str(table["text"].to_pylist())))


def test_what_is_sent_to_tickets_holds_no_secret(
    known: Analysis, unknown: Analysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JIRA_URL", "http://127.0.0.1:9")
    for analysis in (known, unknown):
        written = letter(analysis.diagnosis)
        parts = [written.subject, written.markdown, written.wiki, written.page.data.decode(), written.page.name]
        assert left_in("\n".join([*parts, written.data])) == []
        for ticket in _TICKETS:
            assert left_in(shown(service_for(parsed(ticket), url=None).plan(written))) == []


def test_the_files_beside_a_report_are_named_without_signs(known: Analysis) -> None:
    stem = letter(known.diagnosis).page.name
    assert re.fullmatch(r"[\w.\-]+\.html", stem)
    assert all("<" not in name for name in scripts(known.diagnosis))


@pytest.mark.slow
def test_redacting_a_report_again_changes_nothing(known: Analysis) -> None:
    diagnosis: Diagnosis = known.diagnosis
    twice = redact_diagnosis(diagnosis, redactor=redactor_for(diagnosis, mode="default"))
    assert twice.model_copy(update={"redaction": diagnosis.redaction}) == diagnosis


@pytest.mark.slow
def test_rca_run_keeps_and_says_no_secret(tmp_path: Path) -> None:
    lines = [shape.line for shape in shapes() if "\n" not in shape.line and "\0" not in shape.line]
    environ = {f"NOTE_{n}": line for n, line in enumerate(lines)} | {"HUB_TOKEN": "Zx81qwerty77"}
    keys = [item for shape in shapes()[:40] if "\n" not in shape.secret for item in ("--api-key", shape.secret)]
    code = "import os; print('step 1 loss 2.0'); raise RuntimeError('CUDA error: ' + os.environ['NOTE_0'])"
    done = subprocess.run(
        [sys.executable, "-m", "rca", "run", "--run-dir", RUN_NAME, "--", sys.executable, "-c", code, *keys],
        cwd=tmp_path,
        capture_output=True,
        env={**os.environ, **environ},
        check=False,
        timeout=180,
    )
    assert done.returncode == 1
    kept = tmp_path / RUN_NAME / "rca-run"
    for name in ("rca-run.json", "environment.txt"):
        assert left_in((kept / name).read_text()) == []
    assert "HUB_TOKEN=<secret>" in (kept / "environment.txt").read_text()
    said = done.stderr.decode().partition("RuntimeError: CUDA error")[2].partition("\n")[2]
    assert left_in(said) == []
    reports = [file for file in (tmp_path / "reports").rglob("*") if file.is_file()]
    assert len(reports) >= 3
    for file in reports:
        assert left_in(file.name + file.read_text()) == []

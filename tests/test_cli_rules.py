"""The commands under `rca rules`, as an author meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rca.cli import cli
from rca.errors import KnowledgeError, UsageError

LINE = "2026-03-01 10:11:12,345 [rank3] ERROR cache: lease n17 lost after 30 s"


def rca(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(cli, [str(item) for item in arguments], input=text, prog_name="rca")


@pytest.fixture
def team(tmp_path):
    folder = tmp_path / "team"
    rca("rules", "new", "acme.lease_lost", "--rules", folder, "--from-line", LINE)
    return folder


@pytest.mark.parametrize(
    ("filters", "kinds"),
    [
        (["--kind", "experiment"], {"experiment"}),
        (["--domain", "numerics"], {"cause", "signature"}),
        (["--maturity", "stable"], {"cause"}),
        (["--emitter", "nccl"], {"signature"}),
        (["memory."], {"cause"}),
    ],
)
def test_list_keeps_what_the_filters_say(filters, kinds) -> None:
    rows = json.loads(rca("rules", "list", *filters, "--json").stdout)
    assert rows
    assert {row["kind"] for row in rows} <= kinds
    lines = rca("rules", "list", *filters).stdout.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == [row["id"] for row in rows]
    assert max(map(len, lines)) <= 80


def test_a_filter_that_leaves_nothing_says_what_there_is() -> None:
    assert isinstance(rca("rules", "list", "--emitter", "ncl").exception, UsageError)
    assert "nccl" in str(rca("rules", "list", "--emitter", "ncl").exception)


def test_show_prints_the_text_of_one_signature_not_of_its_whole_file() -> None:
    shown = rca("rules", "show", "nccl.work_state").stdout
    assert shown.count("- id: ") == 1
    assert json.loads(rca("rules", "show", "nccl.work_state", "--json").stdout)["id"] == "nccl.work_state"


@pytest.mark.parametrize("command", ["show", "test"])
def test_an_id_that_is_almost_right_is_suggested(command) -> None:
    assert "did you mean numerics.bad_init" in str(rca("rules", command, "numerics.bad_inot").exception)


def test_explain_tells_conditions_in_words_and_the_maturity() -> None:
    told = " ".join(rca("explain", "numerics.fp16_overflow", "-v").stdout.split())
    assert "(hint, required, 0.5 nats: any of: config `precision` matches" in told
    assert "Maturity: stable" in told
    assert "rca rules show cuda.oom" in str(rca("explain", "cuda.oom").exception)


def test_new_takes_the_message_without_its_prefix_for_the_pattern(team) -> None:
    text = (team / "acme" / "lease_lost.yaml").read_text()
    assert r"log: 'lease n\d+ lost after \d+ s'" in text
    assert LINE in (team / "acme" / "lease_lost.cases.yaml").read_text()
    assert (team / "schemas" / "cause.schema.json").is_file()


def test_new_reads_the_line_from_standard_input_and_overwrites_nothing(tmp_path) -> None:
    first = rca("rules", "new", "acme.gone", "--rules", tmp_path, "--from-line", "-", text="node gone: 17\n")
    assert first.exit_code == 0
    assert "node gone: " in (tmp_path / "acme" / "gone.yaml").read_text()
    assert "exists already" in str(rca("rules", "new", "acme.gone", "--rules", tmp_path).exception)


def test_new_points_at_the_schemas_that_lie_one_folder_higher(tmp_path) -> None:
    rca("rules", "schema", "--write", tmp_path)
    rca("rules", "new", "acme.gone", "--rules", tmp_path / "causes")
    file = tmp_path / "causes" / "acme" / "gone.yaml"
    named = file.read_text().splitlines()[0].split("=")[1]
    assert (file.parent / named).resolve() == (tmp_path / "schemas" / "cause.schema.json").resolve()
    assert not (tmp_path / "causes" / "schemas").exists()


def test_what_is_not_filled_in_fails_the_check(team) -> None:
    checked = rca("rules", "check", "--rules", team)
    assert isinstance(checked.exception, UsageError)
    lines = checked.stdout.splitlines()
    assert all("FILL IN" in line for line in lines)
    assert {Path(line.split(":")[0]).name for line in lines} == {"lease_lost.yaml", "lease_lost.cases.yaml"}


def test_findings_as_json(team) -> None:
    rows = json.loads(rca("rules", "check", "--rules", team, "--json").stdout)
    assert {"level", "file", "line", "text"} == set(rows[0])


def test_cases_of_a_new_cause_and_those_beside_an_extension_are_run(team) -> None:
    (team / "more.yaml").write_text(
        "extends: memory.leak\nevidence:\n  - {id: gauge, log: 'gauge high', weight: 6, says: So it says.}\n"
    )
    (team / "more.cases.yaml").write_text(
        "fires:\n  - name: gauge\n    log: |\n      step 10 loss 2.0\n      RuntimeError: other\n"
        "silent:\n  - {name: calm, why: no gauge, log: 'Training completed'}\n"
    )
    tested = rca("rules", "test", "--rules", team, "--json")
    results = json.loads(tested.stdout)
    failed = [row for row in results if not row["passed"]]
    assert str(tested.exception) == f"{len(failed)} of {len(results)} cases failed"
    assert any("FILL IN" in row["why"] for row in failed if row["cause"] == "acme.lease_lost")
    assert {(row["name"], row["passed"]) for row in results} >= {("gauge", False), ("calm", True)}


def test_a_case_without_its_folder_names_the_file(team) -> None:
    cases = team / "acme" / "lease_lost.cases.yaml"
    cases.write_text("fires: [{run: nowhere}]\nsilent: [{log: x, why: y}]\n")
    failed = rca("rules", "test", "--rules", team).exception
    assert isinstance(failed, KnowledgeError)
    assert str(cases) in str(failed)


def test_a_rule_that_is_left_out_is_not_listed_and_a_wrong_id_is_suggested() -> None:
    assert "memory.leak " not in rca("rules", "list", "memory.", "--disable", "memory.leak").stdout
    wrong = rca("rules", "list", "--disable", "memory.leek").exception
    assert "did you mean 'memory.leak'" in str(wrong)


def test_folders_of_the_configuration_hold_for_every_command(team, tmp_path, monkeypatch) -> None:
    (tmp_path / "rca.toml").write_text('rules = "team"\ndisabled = ["memory.leak"]\n')
    monkeypatch.chdir(tmp_path)
    assert "acme.lease_lost" in rca("rules", "list").stdout
    assert "memory.leak " not in rca("rules", "list").stdout
    assert "Lease lost" in rca("explain", "acme.lease_lost").stdout
    assert str(team / "acme" / "gone.yaml") in rca("rules", "new", "acme.gone").stdout.replace(
        "wrote team", f"wrote {team}"
    )


def test_what_was_replaced_extended_or_left_out_stands_in_the_report(tmp_path) -> None:
    team, run = tmp_path / "team", tmp_path / "run"
    team.mkdir()
    run.mkdir()
    (run / "job.log").write_text("step 1 loss 2.0\nTraining completed\n")
    shown = json.loads(rca("rules", "show", "memory.leak", "--json").stdout)
    (team / "leak.yaml").write_text(json.dumps(shown))
    (team / "more.yaml").write_text("extends: code.user_exception\nfalsepositives: []\n")
    done = rca("analyze", run, "--rules", team, "--disable", "data.leakage", "--json", "--experiments", "none")
    warnings = json.loads(done.stdout)["warnings"]
    for words in ("memory.leak from ", "code.user_exception is extended by ", "data.leakage is disabled"):
        assert any(warning.startswith(words) for warning in warnings), words


def test_schema_and_reference_are_printed() -> None:
    assert json.loads(rca("rules", "schema", "cases").stdout)["title"] == "rca cases file"
    assert rca("rules", "reference", "field-guide").stdout.startswith("# Field guide")

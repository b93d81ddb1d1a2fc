"""The command line: streams, exit codes, files."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from rca.cli import _run, cli
from rca.diagnosis import Diagnosis

SAMPLES = Path(__file__).resolve().parents[1] / "sample_logs"


def process(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    command = [sys.executable, "-m", "rca", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300)


def rca(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in this process, which spares seconds of imports."""
    before, words, out, err = Path.cwd(), list(map(str, arguments)), io.StringIO(), io.StringIO()
    os.chdir(cwd or before)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = _run(lambda: cli.main(words, prog_name="rca", standalone_mode=False))
    finally:
        os.chdir(before)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    done = rca("analyze", SAMPLES / "ragged_batch" / "run", "-o", folder, "--experiments", "none")
    assert done.returncode == 0, done.stderr
    return folder


def test_analyze_writes_html_json_and_markdown(reports) -> None:
    assert sorted(file.name for file in reports.iterdir()) == [
        "ragged_batch-run.html",
        "ragged_batch-run.json",
        "ragged_batch-run.md",
    ]


def test_the_summary_fits_80_columns_and_names_the_cause_first() -> None:
    done = rca("analyze", SAMPLES / "ragged_batch" / "run", "-f", "text", "-o", "-", "--experiments", "none")
    lines = done.stdout.splitlines()
    assert "data.ragged_batch" in lines[0]
    snippet = " " * 10  # what is for copying is never folded
    assert max(len(line) for line in lines if not line.startswith(snippet)) <= 80


def test_json_prints_exactly_one_document_and_writes_nothing(tmp_path) -> None:
    done = process("analyze", SAMPLES / "healthy" / "run", "--json", "--experiments", "none", cwd=tmp_path)
    assert Diagnosis.model_validate(json.loads(done.stdout)).verdict.cause == "none"
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_quiet_prints_one_line(tmp_path) -> None:
    done = rca("analyze", SAMPLES / "healthy" / "run", "-q", "-o", tmp_path, "-f", "json", "--experiments", "none")
    assert done.stdout.startswith("none ")
    assert done.stdout.count("\n") == 1


def test_a_saved_report_is_rendered_again_from_json_and_from_html(reports, tmp_path) -> None:
    from_json = rca("report", reports / "ragged_batch-run.json", "-f", "md")
    from_html = rca("report", reports / "ragged_batch-run.html", "-f", "md")
    assert from_json.returncode == from_html.returncode == 0
    assert from_json.stdout == from_html.stdout
    assert "data.ragged_batch" in from_json.stdout


AS_PROCESSES = ("absent-directory", "empty", "any", "--version")
"""Last words of commands whose codes are also those of the process."""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["analyze", "absent-directory"], 2),
        (["analyze", "empty"], 3),
        (["analyze", "logs", "--budget", "soon"], 2),
        (["analyze", "logs", "--rules", "absent"], 2),
        (["analyze", "logs", "--experiments", "none", "-f", "json", "--fail-on", "any"], 1),
        (["analyze", "logs", "--experiments", "none", "-f", "json", "--fail-on", "memory.leak"], 0),
        (["analyze", "logs", "--experiments", "none", "-o", "logs/a.log"], 2),
        (["analyze", "logs", "--experiments", "none", "--json", "--save-events", "no/such/events.parquet"], 2),
        (["analyze", "--no-such-option"], 2),
        (["explain", "no.such_cause"], 2),
        (["eval", "empty"], 2),
        (["eval", "empty", "--fit", "mine.json"], 2),
        (["lab", "make", "no_such_fault", "out"], 2),
        (["rules", "show", "no.such"], 2),
        (["--version"], 0),
        (["--help"], 0),
    ],
)
def test_exit_codes(tmp_path, arguments, code) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text(
        "Traceback (most recent call last):\n"
        '  File "train.py", line 3, in <module>\n    run()\n'
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)\n"
    )
    done = (process if arguments[-1] in AS_PROCESSES else rca)(*arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    if code in {2, 3}:
        assert done.stderr.strip()
        assert "Traceback" not in done.stderr


def test_a_foreign_file_is_not_replaced_without_force(tmp_path) -> None:
    target = tmp_path / "ragged_batch-run.json"
    target.write_text("mine")
    arguments = ["analyze", SAMPLES / "ragged_batch" / "run", "-o", tmp_path, "-f", "json", "--experiments", "none"]
    assert rca(*arguments).returncode == 2
    assert target.read_text() == "mine"
    assert rca(*arguments, "--force").returncode == 0
    assert rca(*arguments).returncode == 0


def test_events_are_saved_as_parquet(tmp_path) -> None:
    import pyarrow.parquet as pq

    file = tmp_path / "events.parquet"
    rca("analyze", SAMPLES / "healthy" / "run", "--json", "--experiments", "none", "--save-events", file)
    table = pq.read_table(file)
    assert table.num_rows > 50
    assert "event_id" in table.column_names


def test_help_loads_neither_torch_nor_pandas() -> None:
    code = (
        "import sys\nfrom rca.cli import _run, cli\n"
        "_run(lambda: cli.main(['analyze', '--help'], standalone_mode=False))\n"
        "print([name for name in ('torch', 'pandas', 'transformers', 'sklearn', 'pyarrow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")


def test_rules_only_analysis_loads_no_torch() -> None:
    run = SAMPLES / "dataloader_bound" / "run"
    code = (
        "import sys\nfrom rca.pipeline import Options, analyze\n"
        f"analyze({str(run)!r}, options=Options(experiments='none'))\n"
        "print([name for name in ('torch', 'transformers', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_team_rule_is_written_checked_and_used(tmp_path) -> None:
    assert rca("rules", "new", "acme.lease_expired", "--rules", "team", cwd=tmp_path).returncode == 0
    cause = tmp_path / "team" / "acme" / "lease_expired.yaml"
    text = cause.read_text()
    assert "log: 'FILL IN" in text
    cause.write_text(
        "\n".join(
            "    log: 'lease [a-z0-9]+ lost'" if line.strip().startswith("log:") else line for line in text.splitlines()
        )
    )
    cause.with_name("lease_expired.cases.yaml").write_text(
        "fires:\n- log: |\n    ERROR cache: lease n17 lost\n"
        "silent:\n- why: renewed\n  log: |\n    INFO lease n17 renewed\n"
    )
    done = rca("rules", "test", "acme", "--rules", "team", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "job.log").write_text("ERROR cache: lease n17 lost\n")
    done = rca("analyze", "run", "--rules", "team", "-q", "--experiments", "none", "-f", "json", cwd=tmp_path)
    assert done.stdout.startswith("acme.lease_expired")


def test_lab_lists_at_least_forty_faults() -> None:
    rows = json.loads(rca("lab", "list", "--json").stdout)
    assert len(rows) >= 40
    assert {"fault", "cause", "title", "severities", "unseen"} == set(rows[0])


def test_a_healthy_run_is_given_by_option_and_by_the_configuration_file(tmp_path) -> None:
    (tmp_path / "nightly").symlink_to(SAMPLES / "healthy" / "run")
    (tmp_path / "rca.toml").write_text('experiments = "none"\nbaseline = "nightly"\n', encoding="utf-8")
    run = SAMPLES / "lr_too_high" / "run"
    by_file = rca("--config", tmp_path / "rca.toml", "analyze", run, "--json")
    option = rca("analyze", run, "--json", "--experiments", "none", "--baseline", SAMPLES / "healthy" / "run")
    for done in (by_file, option):
        baseline = Diagnosis.model_validate_json(done.stdout).baseline
        assert baseline is not None, done.stderr
        assert baseline.used


def test_a_baseline_that_is_not_there_is_a_usage_error(tmp_path) -> None:
    done = rca("analyze", SAMPLES / "healthy" / "run", "--json", "--baseline", tmp_path / "absent")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the baseline cannot be used" in done.stderr


@pytest.mark.parametrize("form", ["html", "json", "md", "text"])
def test_every_format_replaces_its_own_report(tmp_path: Path, form: str) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "train.log").write_text("step 1 loss 2.0\nstep 2 loss 1.9\n", encoding="utf-8")
    for _ in range(2):
        done = rca("analyze", run, "--experiments", "none", "-f", form, "-o", tmp_path / "out")
        assert done.returncode == 0, done.stderr


def test_an_interruption_that_nobody_can_be_told_of_is_no_internal_error(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stderr", sys.stderr)

    def telling() -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")  # noqa: B904 - as click does

    assert _run(telling) == 130
    assert list(tmp_path.iterdir()) == []

"""A report in which nothing was replaced, and what is told of an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from report.samples import every

from rca import cli as command_line
from rca.cli import cli
from rca.diagnosis import Redaction
from rca.redact.messages import command_without_secrets, without_secrets
from rca.report.json_report import JsonReport
from rca.report.outline import redaction

from .corpus import drawn


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    diagnosis = every()["unknown"].model_copy(update={"redaction": Redaction(mode="none")})
    assert "Do not pass" in redaction(diagnosis)
    file = tmp_path / "report.json"
    file.write_text(JsonReport().render(diagnosis))
    return file


def test_an_unredacted_report_is_sent_only_when_that_is_said(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "x")
    asked = ["attach", str(saved), "--to", "github:acme/train#12"]
    refused = CliRunner().invoke(cli, [*asked, "--yes"])
    assert "--unredacted" in str(refused.exception)
    shown = CliRunner().invoke(cli, [*asked, "--dry-run"])
    assert shown.exit_code == 0
    assert "nothing was redacted" in shown.stderr


def test_the_crash_log_and_messages_hold_no_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    key = "hf" + "_" + drawn("crash", 34)

    def fails() -> None:
        raise RuntimeError(f"cannot open /home/ada/{key}.log")

    assert command_line._run(fails) == 4
    told = (tmp_path / "rca-crash.log").read_text()
    assert key not in told
    assert "/home/<user-1>/<secret>.log" in told
    assert key not in capsys.readouterr().err
    assert without_secrets(f"/home/ada/{key} is not a directory") == "/home/ada/<secret> is not a directory"


def test_the_words_of_a_command() -> None:
    key = drawn("command", 32)
    words = ["python", "train.py", "--api-key", key, "--lr", "0.1", f"--hub_token={key}"]
    assert command_without_secrets(words) == [*words[:3], "<secret>", "--lr", "0.1", "--hub_token=<secret>"]

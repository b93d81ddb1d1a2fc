"""Defaults from files."""

from __future__ import annotations

import pytest

from rca.config import defaults
from rca.errors import UsageError


def test_rca_toml_gives_defaults_to_analyze_and_rules_to_all(tmp_path) -> None:
    (tmp_path / "rca.toml").write_text('rules = ["team"]\nbudget = "5m"\nformat = ["json"]\n[eval]\nbudget = "10s"\n')
    found = defaults(folder=tmp_path)
    assert found["analyze"] == {"rules": ["team"], "budget": "5m", "formats": ["json"]}
    assert found["explain"] == {"rules": ["team"]}
    assert found["eval"] == {"budget": "10s"}


def test_pyproject_is_used_when_there_is_no_rca_toml(tmp_path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.rca]\nredact = "strict"\n')
    assert defaults(folder=tmp_path)["analyze"] == {"redact": "strict"}
    (tmp_path / "rca.toml").write_text('redact = "none"\n')
    assert defaults(folder=tmp_path)["analyze"] == {"redact": "none"}


def test_no_file_no_defaults(tmp_path) -> None:
    assert defaults(folder=tmp_path)["analyze"] == {}


@pytest.mark.parametrize("text", ["rules = [", "a = " + "[" * 5000, "a = " + "9" * 6000, "a = '\0'"])
def test_a_wrong_file_is_named(tmp_path, text) -> None:
    file = tmp_path / "rca.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"rca\.toml"):
        defaults(folder=tmp_path)


def test_a_tool_that_is_no_table_gives_no_defaults(tmp_path) -> None:
    (tmp_path / "pyproject.toml").write_text("tool = 5\n")
    assert defaults(folder=tmp_path)["analyze"] == {}


def test_a_flag_wins_over_a_variable_and_a_variable_over_a_file(tmp_path, monkeypatch) -> None:
    from click.testing import CliRunner

    from rca.cli import _run, cli

    (tmp_path / "rca.toml").write_text('budget = "from file"\n')
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path)

    def named(*arguments: str) -> str:
        with CliRunner().isolation() as streams:
            _run(lambda: cli.main(["analyze", "run", *arguments], prog_name="rca", standalone_mode=False))
            return streams[1].getvalue().decode()

    assert "from file" in named()
    monkeypatch.setenv("RCA_ANALYZE_BUDGET", "from variable")
    assert "from variable" in named()
    assert "from flag" in named("--budget", "from flag")

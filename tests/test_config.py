"""Defaults from files."""

from __future__ import annotations

import re

import pytest

from rca.config import defaults, unknown_keys
from rca.errors import UsageError


def test_rca_toml_gives_defaults_to_analyze_and_rules_to_all(tmp_path) -> None:
    (tmp_path / "rca.toml").write_text('rules = ["team"]\nbudget = "5m"\nformat = ["json"]\n[eval]\nbudget = "10s"\n')
    found = defaults(folder=tmp_path)
    team = str(tmp_path / "team")
    assert found["analyze"] == {"rules": [team], "budget": "5m", "formats": ["json"]}
    assert found["explain"] == found["rules"]["test"] == {"rules": [team]}
    assert found["eval"] == {"budget": "10s"}


def test_pyproject_is_used_when_there_is_no_rca_toml(tmp_path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.rca]\nredact = "strict"\n')
    assert defaults(folder=tmp_path)["analyze"] == {"redact": "strict"}
    (tmp_path / "rca.toml").write_text('redact = "none"\n')
    assert defaults(folder=tmp_path)["analyze"] == {"redact": "none"}


def test_how_experiments_are_done_holds_for_both_commands_and_paths_are_relative_to_the_file(tmp_path) -> None:
    text = 'budget = "5m"\nlimit = "20s"\ntwin = "my_twin.py:build"\ndata = "samples"\nexperiments = "all"\n'
    (tmp_path / "rca.toml").write_text(text)
    found = defaults(folder=tmp_path)
    expected = {
        "budget": "5m",
        "limit": "20s",
        "twin": str(tmp_path / "my_twin.py:build"),
        "data": str(tmp_path / "samples"),
    }
    assert found["experiment"] == expected
    assert found["analyze"] == {**expected, "experiments": "all"}


def test_no_file_no_defaults(tmp_path) -> None:
    assert defaults(folder=tmp_path)["analyze"] == {}


@pytest.mark.parametrize("text", ["rules = [", "a = " + "[" * 5000, "a = " + "9" * 6000, "a = '\0'"])
def test_a_wrong_file_is_named(tmp_path, text) -> None:
    file = tmp_path / "rca.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"rca\.toml"):
        defaults(folder=tmp_path)


def test_one_folder_may_stand_without_brackets_and_disabled_is_an_option(tmp_path) -> None:
    (tmp_path / "rca.toml").write_text('rules = "team"\ndisabled = ["memory.leak"]\n')
    assert defaults(folder=tmp_path)["analyze"] == {"rules": [str(tmp_path / "team")], "disable": ["memory.leak"]}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('budgt = "5m"', r"no option 'budgt'; did you mean 'budget'"),
        ("[evl]\nbudget = '1m'", r"no command for the table \[evl\]; did you mean 'eval'"),
        ("[eval]\nbugdet = '1m'", r"`rca eval` has no option 'bugdet'"),
    ],
)
def test_a_key_that_nothing_reads_is_an_error(tmp_path, text, sentence) -> None:
    (tmp_path / "rca.toml").write_text(text)
    commands = {"analyze": {"budget", "rules"}, "eval": {"budget"}, "explain": set(), "rules": set()}
    found = defaults(folder=tmp_path)
    assert any(re.search(sentence, item) for item in unknown_keys(found | {"rules": {}}, commands))


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

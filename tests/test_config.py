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

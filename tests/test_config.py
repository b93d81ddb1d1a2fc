"""Defaults from files and variables: one precedence, for every option of every command."""

from __future__ import annotations

import json
import re

import click
import pytest
from click.testing import CliRunner

from rca.cli import _run, _settable, cli
from rca.cli_command import key, variables
from rca.config import SHARED, defaults
from rca.errors import UsageError

COMMANDS = dict(_settable(cli))
OPTIONS = [(path, name) for path, known in COMMANDS.items() for name in known]


def read(folder, text: str, name: str = "rca.toml") -> dict:
    (folder / name).write_text(text)
    return defaults(COMMANDS, folder=folder)


def option(path: tuple[str, ...], name: str) -> click.Option:
    command: click.Command = cli
    for word in path:
        command = command.commands[word]
    return next(item for item in command.params if isinstance(item, click.Option) and key(item) == name)


def example(found: click.Option) -> tuple[object, str]:
    """A value of a file and the same value in a variable."""
    if isinstance(found.type, click.Choice):
        value = str(found.type.choices[-1])
    elif found.is_flag:
        return True, "1"
    elif found.count:
        return 2, "2"
    elif isinstance(found.type, (click.types.IntParamType, click.types.FloatParamType)):
        return 1, "1"
    else:
        value = {"format": "md", "seeds": "3"}.get(key(found), "abc")
    return value, value


def test_rca_toml_gives_defaults_to_analyze_and_what_is_shared_to_all(tmp_path) -> None:
    text = 'rules = ["team"]\nbudget = "5m"\nformat = ["json"]\n[eval]\nbudget = "10s"\n[lab.make]\nseed = 3\n'
    found = read(tmp_path, text)
    team = str(tmp_path / "team")
    assert found["analyze"] == {"rules": [team], "budget": "5m", "formats": ["json"]}
    assert found["explain"] == found["rules"]["test"] == {"rules": [team]}
    assert found["rules"]["new"] == {"rules": team}
    assert found["lab"]["make"] == {"seed": 3}
    assert found["eval"] == {"rules": [team], "budget": "10s"}
    assert found["experiment"] == found["run"] == {"rules": [team], "budget": "5m"}


def test_pyproject_is_used_when_there_is_no_rca_toml(tmp_path) -> None:
    assert read(tmp_path, '[tool.rca]\nredact = "strict"\n', "pyproject.toml")["analyze"] == {"redact": "strict"}
    assert read(tmp_path, 'redact = "none"\n')["analyze"] == {"redact": "none"}


def test_paths_are_relative_to_the_file(tmp_path) -> None:
    found = read(tmp_path, 'twin = "my_twin.py:build"\ndata = "samples"\nbaseline = "s3://bucket/run"\n')
    expected = {
        "twin": str(tmp_path / "my_twin.py:build"),
        "data": str(tmp_path / "samples"),
        "baseline": "s3://bucket/run",
    }
    assert found["experiment"] == found["analyze"] == expected


@pytest.mark.parametrize("text", ["", "[tool]\n", "tool = 5\n", "[tool]\nrca = 5\n"])
def test_no_table_no_defaults(tmp_path, text) -> None:
    assert defaults(COMMANDS, folder=tmp_path) == {}
    assert read(tmp_path, text, "pyproject.toml") == {}


@pytest.mark.parametrize("text", ["rules = [", "a = " + "[" * 5000, "a = " + "9" * 6000, "a = '\0'"])
def test_a_wrong_file_is_named(tmp_path, text) -> None:
    with pytest.raises(UsageError, match=r"rca\.toml"):
        read(tmp_path, text)


def test_one_folder_may_stand_without_brackets_and_disabled_is_an_option(tmp_path) -> None:
    found = read(tmp_path, 'rules = "team"\ndisabled = ["memory.leak"]\n')
    assert found["analyze"] == {"rules": [str(tmp_path / "team")], "disable": ["memory.leak"]}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('budgt = "5m"', r"no option is called 'budgt'; did you mean 'budget'"),
        ("[evl]\nbudget = '1m'", r"no command for the table \[evl\]; did you mean 'eval'"),
        ("[eval]\nbugdet = '1m'", r"`rca eval` has no option 'bugdet'; did you mean 'budget'"),
        ("[rules.lst]\nkind = 'cause'", r"no command for the table \[rules.lst\]; did you mean 'rules.list'"),
        ("[rules]\nkind = 'cause'", r"`rca rules` has no options of its own; write \[rules.COMMAND\]"),
        ("[report]\nforce = true", r"`rca report` has no option 'force'"),
        ("budget = ['5m', '6m']\n[analyze]\nbudget = ['5m']", r"'budget' of `rca analyze` takes one value"),
    ],
)
def test_a_key_that_nothing_reads_is_an_error_that_names_the_nearest(tmp_path, text, sentence) -> None:
    with pytest.raises(UsageError, match=sentence):
        read(tmp_path, text)


@pytest.mark.parametrize(("path", "name"), OPTIONS, ids=[f"{'-'.join(path)}-{name}" for path, name in OPTIONS])
def test_a_flag_wins_over_a_variable_and_a_variable_over_a_file(tmp_path, monkeypatch, path, name) -> None:
    found = option(path, name)
    filed, spelled = example(found)
    (tmp_path / "rca.toml").write_text(f"[{'.'.join(path)}]\n{name} = {json.dumps(filed)}\n")
    monkeypatch.chdir(tmp_path)

    def source(*given: str) -> str:
        """Where the value of the option comes from, before any of them is looked at."""
        context = click.Context(cli, info_name="rca", default_map=defaults(COMMANDS, folder=tmp_path))
        command: click.Command = cli
        for word in path:
            command = command.commands[word]
            context = click.Context(command, info_name=word, parent=context)
        found.envvar = variables(list(path), found)
        opts = {str(found.name): given[0]} if given else {}
        return found.consume_value(context, opts)[1].name

    assert source() == "DEFAULT_MAP"
    monkeypatch.setenv(variables(list(path), found)[-1], spelled)
    assert source() == "ENVIRONMENT"
    assert source(spelled) == "COMMANDLINE"


def test_the_order_holds_in_a_real_call(tmp_path, monkeypatch) -> None:
    (tmp_path / "rca.toml").write_text('budget = "from file"\n')
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path)

    def named(*arguments: str) -> str:
        with CliRunner().isolation() as streams:
            _run(lambda: cli.main(["analyze", "run", *arguments], prog_name="rca", standalone_mode=False))
            return streams[1].getvalue().decode()

    assert "from file" in named()
    monkeypatch.setenv("RCA_BUDGET", "from shared variable")
    assert "from shared variable" in named()
    monkeypatch.setenv("RCA_ANALYZE_BUDGET", "from variable")
    assert "from variable" in named()
    assert "from flag" in named("--budget", "from flag")


def test_a_wrong_value_says_where_it_stands(tmp_path, monkeypatch) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "rca.toml").write_text('device = "tpu"\n')
    monkeypatch.chdir(tmp_path)

    def told() -> str:
        with CliRunner().isolation() as streams:
            assert _run(lambda: cli.main(["analyze", "run"], prog_name="rca", standalone_mode=False)) == 2
            return streams[1].getvalue().decode()

    assert "The value stands in the configuration file." in told()
    monkeypatch.setenv("RCA_DEVICE", "npu")
    assert "The value stands in the variable RCA_DEVICE." in told()


def test_what_commands_share_has_the_same_name_everywhere() -> None:
    for known in COMMANDS.values():
        for name, setting in known.items():
            if setting.name in SHARED:
                assert re.sub("_", "-", setting.name) == name

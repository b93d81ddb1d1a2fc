"""The help of every command, and what is printed on a terminal of 80 columns."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from rca.cli import cli
from rca.cli_pages import documented

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = "reports/sample/fp16_overflow-run.json"


def commands(group: click.Group = cli, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [path]
    for name, command in group.commands.items():
        inside = (*path, name)
        found += commands(command, inside) if isinstance(command, click.Group) else [inside]
    return found


ALL = commands()


def test_every_command_has_a_page_and_every_page_a_command() -> None:
    assert {" ".join(path) for path in ALL} == set(documented())


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_the_help_says_everything_in_80_columns(path: tuple[str, ...]) -> None:
    text = CliRunner().invoke(cli, [*path, "--help"], prog_name="rca", terminal_width=80).output
    assert max(map(len, text.splitlines())) <= 80
    assert all(f"\n{heading}:" in text for heading in ("Examples", "Exit codes", "Files"))
    assert text.count("--help") == 1
    command: click.Command = cli
    for word in path:
        command = command.commands[word]
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, option.name
            assert option.opts[-1] in text


def test_the_examples_of_the_help_are_commands_that_exist() -> None:
    from rca.cli_pages import page

    for path in ALL:
        for line, _ in page(path).examples:
            words = shlex.split(line.split(" | ")[0].split(" && ")[0].split(" > ")[0])
            words = words[words.index("rca") + 1 :]
            command: click.Command = cli
            while isinstance(command, click.Group):
                assert words[0] in command.commands, line
                command = command.commands[words.pop(0)]
            given = [word for word in words[: words.index("--")] if word] if "--" in words else words
            flags = {flag for option in command.params for flag in option.opts}
            assert [word for word in given if word.startswith("-") and word != "-" and word not in flags] == [], line


def test_colour_follows_the_option_then_the_variables_then_the_terminal(on_terminal) -> None:
    show = (sys.executable, "-m", "rca", "report", SAMPLE)
    assert "\x1b[" in on_terminal(*show)
    assert "\x1b[" not in on_terminal(*show, NO_COLOR="1")
    assert "\x1b[" not in on_terminal(*show, TERM="dumb")
    assert "\x1b[" in on_terminal(*show, "--color", "always", NO_COLOR="1")
    assert "\x1b[" in on_terminal(*show, FORCE_COLOR="1", TERM="dumb")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_report_is_never_wider_than_the_terminal(language: str) -> None:
    from rca.report.wrapping import columns

    plain, more, most = (
        CliRunner().invoke(cli, ["report", SAMPLE, "--lang", language, *given], prog_name="rca").output
        for given in ((), ("-v",), ("-vv",))
    )
    for text in (plain, more, most):
        lines = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
        assert max(map(columns, (line for line in lines if not line.startswith(" " * 10)))) <= 80
    assert len(plain.splitlines()) < len(more.splitlines()) < len(most.splitlines())


@pytest.mark.parametrize("arguments", [["rules", "list"], ["lab", "list"], ["experiment", "list"]])
def test_lists_fit_80_columns(arguments: list[str]) -> None:
    text = CliRunner().invoke(cli, arguments, prog_name="rca").output
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("rules list | head -1", 0),
        ("rules list 2>&1 | true", 0),
        (f"report {SAMPLE} >&-", 0),
        (f"report {SAMPLE} >&- 2>&-", 0),
        ("explain numerics.nothing 2>&-", 2),
        ("run -- python -c 'raise SystemExit(3)' 2>&1 | true", 3),
    ],
)
def test_streams_that_nobody_reads_change_no_exit_code(command: str, code: int, tmp_path: Path) -> None:
    first, pipe, rest = command.partition(" | ")
    started = f"{shlex.quote(sys.executable)} -m rca {first}; echo $? >code"
    script = f"cd {shlex.quote(str(tmp_path))}; {{ {started}; }}{pipe}{rest}"
    script = script.replace(SAMPLE, str(ROOT / SAMPLE))
    subprocess.run(["bash", "-c", script], env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120, check=True)
    assert (tmp_path / "code").read_text().strip() == str(code)
    assert not list(tmp_path.glob("rca-crash.log"))

"""The README says what is true: its help block, its links, its two commands."""

from __future__ import annotations

import re

from click.testing import CliRunner

from rca.cli import cli

HELP_WIDTH = 80


def help_text() -> str:
    return CliRunner().invoke(cli, ["analyze", "--help"], prog_name="rca", terminal_width=HELP_WIDTH).output.strip()


def test_the_help_block_is_the_real_output(root) -> None:
    assert help_text() in (root / "README.md").read_text()


def test_the_two_commands_do_all_the_set_up(root) -> None:
    text = (root / "README.md").read_text()
    assert re.search(r"^pip install -c constraints\.txt \. && rca analyze sample_logs/\w+/run$", text, re.MULTILINE)
    assert "\npip install -c constraints.txt '.[test]' && pytest\n" in text
    assert (root / re.search(r"rca analyze (sample_logs/\w+/run)", text)[1]).is_dir()
    assert "torch==2.13.0" in (root / "constraints.txt").read_text()


def test_links_and_pictures_exist(root) -> None:
    for page in ("README.md", "CONTRIBUTING.md", "knowledge/README.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", (root / page).read_text()):
            if not target.startswith("http"):
                assert ((root / page).parent / target).exists(), (page, target)


def test_every_command_is_mentioned_and_has_help(root) -> None:
    text = (root / "README.md").read_text()
    for name, command in cli.commands.items():
        assert command.help, name
        assert f"rca {name}" in text, name


def test_every_exit_code_is_documented(root) -> None:
    text = (root / "README.md").read_text()
    assert all(re.search(rf"^  {code} +\S", text, re.MULTILINE) for code in (0, 1, 2, 3, 4, 130))
    assert "ends with 5" in text
    assert re.search(r"^  5 +\S", CliRunner().invoke(cli, ["attach", "--help"]).output, re.MULTILINE)

"""The language of reports: an option, a variable, a file; the data stays English."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from rca.cli import cli
from rca.report.html import HtmlReport
from rca.report.json_report import JsonReport
from rca.report.words import catalogue, languages, say
from rca.report.wrapping import columns
from tests.report.samples import every

SAMPLES = Path(__file__).resolve().parents[1] / "sample_logs"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved report."""
    file = tmp_path_factory.mktemp("saved") / "run.json"
    file.write_text(JsonReport().render(every()["suspected"]), encoding="utf-8")
    return file


def rca(*arguments: object, folder=None, monkeypatch=None):
    """Run the command line in this process."""
    if folder is not None:
        monkeypatch.chdir(folder)
    return CliRunner().invoke(cli, list(map(str, arguments)), prog_name="rca")


def test_option_variable_and_file_choose_the_language(saved, tmp_path, monkeypatch) -> None:
    chinese, english = (catalogue(language)["text.fix"] for language in ("zh", "en"))
    (tmp_path / "rca.toml").write_text('lang = "zh"\n')
    assert f"= {english}:" in rca("report", saved).output
    assert f"= {chinese}:" in rca("report", saved, "--lang", "zh").output
    assert f"= {chinese}:" in rca("report", saved, folder=tmp_path, monkeypatch=monkeypatch).output
    monkeypatch.setenv("RCA_LANG", "en")
    assert f"= {english}:" in rca("report", saved).output
    assert f"= {chinese}:" in rca("report", saved, "--lang", "zh").output


def test_an_unknown_language_is_a_usage_error_that_lists_them(saved) -> None:
    result = rca("report", saved, "--lang", "xx")
    assert result.exit_code == 2
    assert all(language in result.output for language in languages())


@pytest.mark.parametrize("command", ["analyze", "report", "attach", "run", "explain", "experiment", "memory"])
def test_every_command_that_renders_has_the_option(command) -> None:
    assert any("--lang" in option.opts for option in cli.commands[command].params)


def test_the_letter_to_a_ticket_is_in_the_language(saved) -> None:
    result = rca("attach", saved, "--to", "gitlab:group/project#3", "--lang", "zh", "--dry-run")
    assert result.exit_code == 0, result.output
    assert catalogue("zh")["section.why"] in result.output


def test_rules_of_a_team_bring_their_own_texts(tmp_path) -> None:
    from rca.cli_language import spoken
    from rca.report.words import shown

    folder = tmp_path / "rules" / "languages" / "zh"
    folder.mkdir(parents=True)
    (folder / "texts.yaml").write_text('"The lease was lost.": "租约丢失。"\n', encoding="utf-8")
    with spoken("zh", (tmp_path / "rules",)):
        assert shown("The lease was lost.") == "租约丢失。"
        assert shown("Device memory ran out.") != "Device memory ran out."
    assert say("text.fix") == "fix"


def test_a_shortened_page_has_its_notice_in_the_language_and_in_english_in_its_data() -> None:
    from rca.cli_language import spoken

    sample = every()["suspected"]
    with spoken("zh"):
        page = HtmlReport().render(_swollen(sample))
    notice = catalogue("zh")["trim.notice"].partition("{")[0]
    assert notice in page
    data = json.loads(page.partition('id="rca-report">')[2].partition("</script>")[0])
    assert data["warnings"][0].startswith(catalogue("en")["trim.notice"].partition("{")[0])


def _swollen(sample):
    """The sample with so long a timeline that no page of it is small enough."""
    entry = sample.timeline[0]
    many = tuple(entry.model_copy(update={"id": f"e{n}", "text": "x" * 900}) for n in range(2_600_000 // 900))
    return sample.model_copy(update={"timeline": many})


def test_experiments_and_predictions_of_memory_are_told_in_the_language() -> None:
    listed = rca("experiment", "list", "--lang", "zh").output
    assert re.search(r"^lr_tenth +\d+ s +\S*[\u4e00-\u9fff]", listed, re.MULTILINE)
    assert [line for line in listed.splitlines() if columns(line) > 80] == []
    step = (SAMPLES / "healthy" / "run" / "config.json", "--device", "8GiB", "--batch", "8", "--seq", "512")
    told = rca("memory", *step, "--lang", "zh").output
    assert "预测的显存峰值" in told
    assert not re.search(r"\b(?:the|is|of|layers|Peak|Fits)\b", told), told
    assert rca("memory", *step, "--json", "--lang", "zh").output == rca("memory", *step, "--json").output

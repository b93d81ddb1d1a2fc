"""Reports that were saved by older versions stay readable, in every format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rca.diagnosis import SCHEMA_VERSION
from rca.errors import UsageError
from rca.report.html import HtmlReport, _page
from rca.report.json_report import load_saved, shortened
from rca.report.migrations import STEPS, migrated
from rca.report.registry import FORMATS
from rca.report.trim import fit_to
from rca.report.words import speaking

SAVED = sorted((Path(__file__).parent / "saved").glob("*.json"))


def test_every_older_version_has_a_saved_report() -> None:
    assert {json.loads(file.read_text())["schema_version"] for file in SAVED} == set(STEPS)


@pytest.mark.parametrize("file", SAVED, ids=lambda file: file.stem)
def test_a_saved_report_is_shown_in_every_format(file: Path) -> None:
    diagnosis = load_saved(file)
    for form, renderer in FORMATS.items():
        text = " ".join(renderer.render(diagnosis).split())
        assert diagnosis.verdict.cause in text or "Activations or the loss" in text, form
    assert json.loads(FORMATS["json"].render(diagnosis))["schema_version"] == SCHEMA_VERSION


def test_the_steps_lead_to_the_present_version_one_by_one() -> None:
    for version in STEPS:
        assert migrated({"schema_version": version})["schema_version"] == SCHEMA_VERSION
    numbers = [tuple(map(int, version.split("."))) for version in (*STEPS, SCHEMA_VERSION)]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("version", ["1.999", "2.0", "10.0"])
def test_a_newer_version_asks_for_a_newer_rca(tmp_path: Path, version: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(json.dumps({"schema_version": version}))
    with pytest.raises(UsageError, match=rf"version {version}, newer than {SCHEMA_VERSION} of this rca; update rca"):
        load_saved(file)


@pytest.mark.parametrize("version", ["0.9", "x", "", "1.0.0.0.x", "9" * 5000, None, []])
def test_what_is_no_known_version_is_a_sentence(tmp_path: Path, version: object) -> None:
    file = tmp_path / "x.json"
    file.write_text(json.dumps({"schema_version": version}))
    with pytest.raises(UsageError, match="schema version"):
        load_saved(file)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_page_that_was_cut_says_so_when_it_is_read_again(tmp_path: Path, language: str) -> None:
    whole = load_saved(SAVED[-1])
    with speaking(language):
        (tmp_path / "cut.html").write_text(fit_to(whole, _page, goal=60_000))
        (tmp_path / "whole.html").write_text(HtmlReport().render(whole))
    assert shortened(load_saved(tmp_path / "cut.html"))
    assert not shortened(load_saved(tmp_path / "whole.html"))

"""What the script adds: the filter of the timeline, copying, saving, the theme, and unfolding all at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rca.diagnosis import Diagnosis
from rca.report.chronology import chronology

from .conftest import OpenPage
from .kinds import KINDS

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CLIPBOARD = ["clipboard-read", "clipboard-write"]


def rows(page: Page) -> list[str]:
    """The ids of the rows that are shown, in their order."""
    return page.locator("#events tbody tr:visible").evaluate_all("(rows) => rows.map((row) => row.id)")


def test_the_timeline_is_searched_filtered_and_turned_round(open_page: OpenPage) -> None:
    page = open_page("distributed").page
    bar = page.locator("#timeline-filter")
    every = rows(page)
    moments = chronology(KINDS["distributed"]())
    assert every == [f"tl-{moment.ids[0]}" for moment in moments]
    assert [len(moment.ranks) for moment in moments] == [1, 1, 1, 1, 1, 7, 1, 7]

    bar.locator("input[type=search]").fill("WATCHDOG caught")
    assert rows(page) == every[-1:]
    assert bar.locator("output").inner_text().split()[0] == "1"
    bar.locator("select[name=rank]").select_option("5")
    assert rows(page) == every[-1:]
    bar.locator("input[type=search]").fill("")
    assert rows(page) == [every[5], every[7]]
    bar.locator("select[name=severity]").select_option("error")
    assert rows(page) == every[-1:]
    bar.locator("select[name=rank]").select_option("")
    bar.locator("select[name=severity]").select_option("")
    bar.locator("select[name=order]").select_option("new")
    assert rows(page) == every[::-1]
    bar.locator("select[name=order]").select_option("")
    assert rows(page) == every
    for mode, shown in (("absolute", (True, False)), ("relative", (False, True)), ("both", (True, True))):
        bar.locator("select[name=times]").select_option(mode)
        heads = page.locator("#events th.time"), page.locator("#events th.since")
        assert tuple(head.is_visible() for head in heads) == shown


def test_copying_puts_the_text_on_the_clipboard(open_page: OpenPage) -> None:
    page = open_page("confirmed", permissions=CLIPBOARD).page
    read = "navigator.clipboard.readText()"
    button = page.locator("#change button.copy").first
    label = button.inner_text()
    button.click()
    assert page.evaluate(read) == page.locator("#fix-1").text_content()
    assert button.inner_text() != label
    page.locator("[data-copy=summary-md]").first.click()
    copied = page.evaluate(read)
    assert KINDS["confirmed"]().verdict.sentence in copied
    assert copied == page.locator("#summary-md").input_value()


def test_where_the_clipboard_is_closed_the_text_is_selected(open_page: OpenPage) -> None:
    page = open_page("confirmed").page
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('denied')); }")
    page.locator("#change button.copy").first.click()
    assert page.evaluate("getSelection().toString()").strip() == page.locator("#fix-1").text_content().strip()
    page.locator("[data-copy=summary-md]").first.click()
    area = page.locator("#summary-md")
    assert area.is_visible()
    assert area.evaluate("(area) => area.selectionEnd - area.selectionStart === area.value.length")


def test_saving_gives_the_diagnosis(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page("confirmed", accept_downloads=True).page
    with page.expect_download() as download:
        page.locator("[data-save]").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    assert file.suffix == ".json"
    saved = Diagnosis.model_validate(json.loads(file.read_text(encoding="utf-8")))
    assert saved.model_dump_json() == KINDS["confirmed"]().model_dump_json()


def test_the_theme_stays_chosen_and_the_page_works_where_nothing_may_be_kept(open_page: OpenPage) -> None:
    tab = open_page("healthy")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = tab.page.evaluate(ground)
    tab.page.locator("[data-theme-toggle]").click()
    dark = tab.page.evaluate(ground)
    assert dark != light
    tab.page.reload()
    assert tab.page.evaluate(ground) == dark
    tab.page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full'); }; }")
    tab.page.locator("[data-theme-toggle]").click()
    assert tab.page.evaluate(ground) == light
    assert tab.console == []


def test_everything_unfolds_and_folds_at_once(open_page: OpenPage) -> None:
    page = open_page("confirmed").page
    button = page.locator("[data-expand]")
    folded = page.locator("details:not([open])")
    assert folded.count() > 3
    button.click()
    assert folded.count() == 0
    button.click()
    assert page.locator("details[open]").count() == 0

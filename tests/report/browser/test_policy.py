"""The page from a file and under Jenkins' policy, with scripts and without: all is there, and nothing is fetched."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from .conftest import OpenPage
from .kinds import KINDS

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WIDER = """() => {
  const root = document.documentElement;
  const inside = (element) => element.closest(".scroll, .plot, .lines, pre, nav ul, .skip, .symbols");
  return [...document.querySelectorAll("body *")]
    .filter((element) => element.checkVisibility() && !inside(element.parentElement) && !element.matches(".skip"))
    .filter((element) => element.getBoundingClientRect().right > root.clientWidth + 1)
    .map((element) => element.outerHTML.slice(0, 160))
    .concat(root.scrollWidth > root.clientWidth ? [`the page is ${root.scrollWidth} wide`] : []);
}"""
"""What reaches beyond the right edge of the window, but for what scrolls by itself."""
DRAWN = """() => [...document.querySelectorAll("svg[role=img]")].filter((drawing) => {
  const { width, height } = drawing.getBoundingClientRect();
  return width > 40 && height > 20 && drawing.querySelector("path[d], rect, line, text");
}).length"""


def wider(page: Page) -> dict[str, list[str]]:
    """By the width of the window and what is unfolded: what does not fit."""
    found = {}
    for unfolded in (False, True):
        if unfolded:
            page.evaluate("document.querySelectorAll('details').forEach((element) => { element.open = true; })")
        for width in (1280, 390, 320):
            page.set_viewport_size({"width": width, "height": 844})
            found[f"{width}, {'unfolded' if unfolded else 'folded'}"] = page.evaluate(WIDER)
    return {name: elements for name, elements in found.items() if elements}


@pytest.mark.parametrize("kind", KINDS)
def test_from_a_file_nothing_is_blocked_fetched_or_too_wide(kind: str, open_page: OpenPage) -> None:
    tab = open_page(kind)
    assert tab.page.locator("#tools").is_visible(), "the script did not run"
    assert wider(tab.page) == {}
    assert tab.console == []
    assert tab.requests == [tab.page.url]


def reads(page: Page, kind: str) -> None:
    """The answer, what to change, why, and the drawings are there, and no control that would do nothing."""
    diagnosis = KINDS[kind]()
    text = " ".join(page.locator("body").text_content().split())
    said = [diagnosis.verdict.sentence]
    for hypothesis in diagnosis.hypotheses[:1] if diagnosis.verdict.status in ("confirmed", "suspected") else ():
        said += [fix.action for fix in hypothesis.fixes]
        said += [item.says for item in (*hypothesis.evidence_for, *hypothesis.evidence_against)]
    assert [part for part in said if " ".join(part.replace("`", "").split()) not in text] == []
    assert page.locator("h1").is_visible()
    assert page.evaluate(DRAWN) == page.locator(".plot > svg").count() > (kind != "unknown") - 1
    assert page.locator("button:visible, input:visible, select:visible").count() == 0


@pytest.mark.parametrize("kind", ["confirmed", "distributed", "unknown"])
def test_under_jenkins_only_our_style_and_script_are_blocked(
    kind: str, open_page: OpenPage, jenkins: Callable[[str], str]
) -> None:
    tab = open_page(kind, address=jenkins(kind))
    reads(tab.page, kind)
    style, script = tab.console
    assert style.startswith("Applying inline style violates")
    assert script.startswith("Blocked script execution")
    assert tab.requests == [tab.page.url]


def test_without_scripts_it_reads_and_evidence_opens(open_page: OpenPage) -> None:
    tab = open_page("confirmed", java_script_enabled=False)
    reads(tab.page, "confirmed")
    assert tab.console == []
    line = tab.page.locator("pre[id^='ev-']").last
    assert not line.is_visible()
    tab.page.goto(f"{tab.page.url}#{line.get_attribute('id')}")
    assert line.is_visible()

"""The page without a mouse: every control is reached in reading order, is seen when it is, and does what it says."""

from __future__ import annotations

import pytest

from .conftest import OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WATCH = """() => {
  const wanted = "a[href], button, input, select, summary, textarea, [tabindex='0']";
  const controls = [...document.querySelectorAll(wanted)].filter((element) => element.checkVisibility());
  window.reached = [];
  document.addEventListener("keyup", () => {
    const element = document.activeElement;
    const { outlineStyle, outlineWidth } = getComputedStyle(element);
    const marked = element.matches(":focus-visible") && outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
    const { x, y, width, height } = element.getBoundingClientRect();
    const top = document.elementFromPoint(x + Math.min(width / 2, 40), y + Math.min(height / 2, 12));
    const seen = top !== null && (element.contains(top) || top.contains(element));
    window.reached.push([controls.indexOf(element), marked && seen ? "" : element.outerHTML.slice(0, 120)]);
  });
  return controls.length;
}"""
"""After each key: which control has the focus, and the control itself where it is not marked or is covered."""


def test_tab_reaches_every_control_in_order_and_shows_where_it_is(open_page: OpenPage) -> None:
    page = open_page("confirmed").page
    controls = page.evaluate(WATCH)
    for _ in range(controls):
        page.keyboard.press("Tab")
    reached = page.evaluate("window.reached")
    assert [position for position, _ in reached] == list(range(controls))
    assert [element for _, element in reached if element] == []


def test_the_skip_link_comes_first_and_skips(open_page: OpenPage) -> None:
    page = open_page("confirmed").page
    page.keyboard.press("Tab")
    skip = page.locator(":focus")
    assert skip.get_attribute("href") == "#main"
    assert skip.bounding_box()["x"] >= 0, "the skip link is not shown"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_enter_unfolds_and_a_link_to_evidence_unfolds_what_holds_it(open_page: OpenPage) -> None:
    page = open_page("confirmed").page
    folded = page.locator("#why details:not([open])").first.element_handle()
    folded.query_selector("summary").focus()
    page.keyboard.press("Enter")
    assert folded.evaluate("(element) => element.open")
    deep = page.locator("#candidates .evidence pre[id^='ev-']").first
    assert not deep.is_visible()
    page.goto(f"{page.url}#{deep.get_attribute('id')}")
    assert deep.is_visible()
    assert 0 <= deep.bounding_box()["y"] < 900


def test_motion_stops_where_it_is_not_wanted(open_page: OpenPage) -> None:
    page = open_page("healthy", reduced_motion="reduce").page
    times = "[...document.querySelectorAll('*')].map((e) => getComputedStyle(e, '::before').transitionDuration)"
    assert set(page.evaluate(times)) == {"0s"}

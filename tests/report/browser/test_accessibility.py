"""No rule of axe-core is broken: light, dark and narrow, folded and unfolded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .conftest import OpenPage
from .kinds import KINDS

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CONTRAST = """axe.configure({
  rules: [{ id: "color-contrast", selector: ":not(svg *)" }],
  checks: [{ id: "color-contrast", options: {
    ignoreUnicode: true, ignoreLength: true, ignorePseudo: true, pseudoSizeThreshold: 0.25,
    boldValue: 700, boldTextPt: 14, largeTextPt: 18,
    contrastRatio: { normal: { expected: 4.5 }, large: { expected: 3 } },
  } }],
})"""
"""As axe has it, but it looks behind pseudo elements (ours are the numbers of the fixes and cover no other text) and at
single characters, and not at the text of drawings, where it cannot tell (the tests of the chart colours do)."""
RUN = """async (colours) => {
  const rules = { "color-contrast": { enabled: colours } };
  const { violations, incomplete } = await axe.run(document, { resultTypes: ["violations", "incomplete"], rules });
  const told = (result) => result.nodes.map((node) => [result.id, node.html.slice(0, 200), node.failureSummary]);
  return [violations.flatMap(told), incomplete.flatMap(told)];
}"""


def unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((element) => { element.open = true; })")


@pytest.mark.parametrize("kind", [*KINDS, "confirmed.zh", "distributed.zh"])
def test_no_rule_is_broken(kind: str, open_page: OpenPage, axe: str) -> None:
    page = open_page(kind).page
    page.evaluate(axe)
    page.evaluate(CONTRAST)
    found: dict[str, Any] = {"folded": page.evaluate(RUN, False)[0]}  # colours: those of the unfolded page, and fewer
    unfold(page)
    page.emulate_media(color_scheme="dark")
    found["dark, unfolded"], undecided = page.evaluate(RUN, True)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 390, "height": 844})  # tables and links now scroll, half of them out of sight
    found["light, narrow, unfolded"] = page.evaluate(RUN, True)[0]
    found["undecided"] = [case for case in undecided if "obscured" not in case[2] and "overlapped" not in case[2]]
    assert {name: cases for name, cases in found.items() if cases} == {}

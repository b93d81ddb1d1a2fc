"""On paper: every evidence line, experiment and script is there, folded or not, and nothing runs off the sheet."""

from __future__ import annotations

import io
import re
import unicodedata

import pytest

from rca.report.outline import RAN

from .conftest import OpenPage
from .kinds import KINDS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SHEET = 718
"""CSS pixels between the margins of an A4 sheet: 210 mm less one centimetre on each side."""
CUT = """(width) => [...document.querySelectorAll("body *")]
  .filter((element) => element.checkVisibility() && !element.closest("svg"))
  .filter((element) => element.getBoundingClientRect().right > width + 1 || (
    element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).overflowX !== "visible"))
  .map((element) => element.outerHTML.slice(0, 160))"""


def squeezed(text: str) -> str:
    """Without white space, hyphens and ligatures: paper breaks lines where it likes."""
    return re.sub(r"[\s\u00ad\u200b-]+", "", unicodedata.normalize("NFKC", text))


@pytest.mark.parametrize("kind", ["confirmed", "distributed"])
def test_the_printed_page_keeps_what_is_folded(kind: str, open_page: OpenPage) -> None:
    from pypdf import PdfReader

    diagnosis = KINDS[kind]()
    page = open_page(kind).page
    paper = page.pdf(format="A4", margin={"left": "10mm", "right": "10mm", "top": "10mm", "bottom": "10mm"})
    printed = squeezed("".join(sheet.extract_text() for sheet in PdfReader(io.BytesIO(paper)).pages))
    wanted = []
    for hypothesis in diagnosis.hypotheses:
        for item in (*hypothesis.evidence_for, *hypothesis.evidence_against, *hypothesis.no_data):
            wanted += [item.says, *item.text.splitlines(), *(line.text for line in item.context)]
    for experiment in diagnosis.experiments:
        tried = experiment.verdict in RAN
        wanted += [experiment.reason, *experiment.script.splitlines(), *([experiment.prediction] if tried else ())]
    missing = [text for text in wanted if squeezed(text.replace("`", "")) not in printed]
    assert missing == [], missing
    assert len(wanted) > 25


@pytest.mark.parametrize("kind", ["confirmed", "distributed", "baseline"])
def test_nothing_runs_off_the_sheet(kind: str, open_page: OpenPage) -> None:
    page = open_page(kind, width=SHEET).page
    page.emulate_media(media="print")
    page.evaluate("document.querySelectorAll('details').forEach((element) => { element.open = true; })")
    assert page.evaluate(CUT, SHEET) == []

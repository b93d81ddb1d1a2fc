"""Text of the run directory is hostile: whatever it says, it is only shown."""

from __future__ import annotations

import re

import pytest
from redact.corpus import secrets

from rca.diagnosis import Diagnosis
from rca.redact import redact_diagnosis
from rca.redact.every_text import map_text
from rca.report.html import HtmlReport
from rca.report.registry import FORMATS

from .page import Page
from .samples import every

ATTACK = (
    "</script></style></pre></textarea></title><img src=x onerror=alert(1)><script>alert(1)</script>"
    "'\"`--><svg/onload=x>{{7*7}}{% x %}"
)
TERMINAL = "\x1b]0;owned\x07\x1b[2J\x9b31m\x00\u202egnirts\u2066\r\n"


def attacked(text: str, name: str = "confirmed") -> Diagnosis:
    """A sample whose every text begins with an attack."""
    return map_text(every()[name], lambda original: text + original)


@pytest.mark.parametrize("name", sorted(every()))
def test_markup_stays_text_in_the_page(name: str) -> None:
    html = HtmlReport().render(attacked(ATTACK, name))
    page = Page(html)
    assert len(page.all("script")) == 2
    assert len(page.all("h1")) == 1
    assert not page.all("img")
    assert not [e for e in page.elements if any(key.startswith("on") for key in e.attributes)]
    assert "{{7*7}}" in html
    assert len(page.ids()) == len(set(page.ids()))
    normal = Page(HtmlReport().render(every()[name]))
    assert {e.tag for e in page.elements} - {"code"} <= {e.tag for e in normal.elements} | {"code"}


def test_markup_in_labels_of_curves_stays_text() -> None:
    diagnosis = every()["suspected"]
    series = tuple(s.model_copy(update={"label": ATTACK, "unit": ATTACK, "name": ATTACK}) for s in diagnosis.series)
    page = Page(HtmlReport().render(diagnosis.model_copy(update={"series": series})))
    assert page.all("svg", role="img")
    assert not page.all("img")
    assert len(page.all("script")) == 2


@pytest.mark.parametrize("form", ["html", "md", "text"])
def test_control_characters_never_reach_a_reader(form: str) -> None:
    text = FORMATS[form].render(attacked(TERMINAL))
    if form == "html":
        text = re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.DOTALL)
    assert not re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def test_markdown_keeps_markup_in_code() -> None:
    text = FORMATS["md"].render(attacked("<img src=x onerror=alert(1)> @everyone [x](http://x) "))
    fences = re.sub(r"(?ms)^\s*(`{3,})[^\n]*\n.*?^\s*\1$", "", text)
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", fences)
    assert "<img" not in outside
    assert "@everyone" not in outside
    assert "[x](" not in outside


def test_links_of_rules_are_only_links_to_the_web() -> None:
    diagnosis = every()["confirmed"]
    lead = diagnosis.hypotheses[0].model_copy(
        update={"references": (("a", "javascript:alert(1)"), ("b", "data:text/html,x"), ("c", "https://example.org"))}
    )
    page = Page(HtmlReport().render(diagnosis.model_copy(update={"hypotheses": (lead,)})))
    outside = [e.attributes["href"] for e in page.all("a") if not e.attributes["href"].startswith("#")]
    assert outside == ["https://example.org"]


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_no_secret_in_any_format(form: str) -> None:
    pairs = secrets()
    diagnosis = every()["confirmed"]
    context = tuple(
        diagnosis.hypotheses[0].evidence_for[0].context[0].model_copy(update={"text": line}) for _, line in pairs
    )
    entry = diagnosis.timeline[0]
    lead = diagnosis.hypotheses[0]
    first = lead.evidence_for[0].model_copy(update={"context": context, "text": pairs[0][1], "says": pairs[1][1]})
    leaky = diagnosis.model_copy(
        update={
            "hypotheses": (lead.model_copy(update={"evidence_for": (first,)}),),
            "timeline": tuple(
                entry.model_copy(update={"id": f"s{n}", "text": line}) for n, (_, line) in enumerate(pairs)
            ),
            "settings": tuple(s.model_copy(update={"value": pairs[n][1]}) for n, s in enumerate(diagnosis.settings)),
            "warnings": tuple(line for _, line in pairs),
        }
    )
    text = FORMATS[form].render(redact_diagnosis(leaky))
    assert not [secret for secret, _ in pairs if secret in text]

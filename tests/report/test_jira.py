"""The report in Jira's markup: it fits the field, what folds folds, and log text stays inert."""

from __future__ import annotations

import re

from rca.diagnosis import Diagnosis
from rca.report.jira import FIELD, JiraReport, converted, wiki


def test_it_fits_the_text_field(sample: Diagnosis) -> None:
    text = JiraReport().render(sample)
    assert len(text) <= FIELD
    assert text.startswith("h2. ")
    assert len(wiki(sample, limit=3000)) <= 3000


def test_what_opens_is_closed(sample: Diagnosis) -> None:
    text = JiraReport().render(sample)
    assert len(re.findall(r"^\{expand", text, re.M)) % 2 == 0
    assert text.count("{code") % 2 == 0
    assert "<details>" not in text
    assert "<!--" not in text


def test_log_text_ends_no_macro() -> None:
    hostile = "```\n{code}\n[~admin] {color:red}!http://x/y.png!\n```\n\n`}} [~admin] {{x`\n"
    text = converted(hostile)
    assert text.count("{code}") == 2
    assert "{color" not in text
    inline = text.rsplit("{code}", 1)[1].strip()
    assert inline.startswith("{{")
    assert inline.endswith("}}")
    assert "}}" not in inline[2:-2]
    assert "[~" not in inline.replace("\\[", "")

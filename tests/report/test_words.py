"""All texts come from one catalogue, so that a language can be added in one place."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from rca.diagnosis import ExperimentVerdict, Status, Verdict
from rca.report.html import TEMPLATES
from rca.report.words import ENGLISH, count, replaced, say, strength

SOURCES = {
    file.name: file.read_text(encoding="utf-8")
    for file in [*TEMPLATES.glob("*.html"), *TEMPLATES.parent.rglob("*.py")]
    if file.name != "words.py"
}


@pytest.mark.parametrize("name", sorted(name for name in SOURCES if name.endswith(".html")))
def test_templates_hold_no_words(name: str) -> None:
    text = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", "\0", SOURCES[name], flags=re.DOTALL)
    attributes = re.findall(r'(?:aria-label|title|placeholder|alt)="([^"]*[A-Za-z]{2}[^"]*)"', text)
    shown = re.findall(r"[A-Za-z]{2,}", re.sub(r"<[^>]*>", " ", text))
    assert [word for word in shown if word != "rca"] == []
    assert attributes == []


def test_every_key_that_is_asked_for_exists() -> None:
    asked = {
        key
        for source in SOURCES.values()
        for key in re.findall(r"""(?<!\w)say\(["']([a-z_.]+[a-z_])["'][,)]""", source)
    }
    assert len(asked) > 100
    assert asked - set(ENGLISH) == set()


def test_every_status_has_its_word() -> None:
    assert all(f"hypothesis.{status}" in ENGLISH for status in get_args(Status))
    assert all(f"experiment.{verdict}" in ENGLISH for verdict in get_args(ExperimentVerdict))
    assert all(f"status.{s}" in ENGLISH for s in get_args(Verdict.model_fields["status"].annotation))


def test_values_are_filled_in_and_may_hold_braces() -> None:
    assert say("rank", rank="{0}") == "rank {0}"
    with pytest.raises(KeyError):
        say("no such key")


def test_counts_and_strengths() -> None:
    assert (count(1, "file"), count(1_200, "file")) == ("1 file", "1,200 files")
    assert (replaced("mail", 2), replaced("ip", 1), replaced("other", 3)) == (
        "2 mail addresses",
        "1 IP address",
        "3 others",
    )
    assert [strength(w) for w in (0.1, -0.7, 1.5)] == ["weak", "moderate", "strong"]

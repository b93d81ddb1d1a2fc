"""The reference pages are those that the rules give, and the field guide is covered row by row."""

from __future__ import annotations

import re

import pytest

from rca.rules.load import load
from rca.rules.reference import PAGES, causes_page, covered

KNOWLEDGE = load()
ROWS = {
    f"{letter}{number}"
    for letter, count in (("A", 7), ("B", 10), ("C", 11), ("D", 7), ("E", 11), ("F", 4), ("G", 7), ("H", 5))
    for number in range(1, count + 1)
}


@pytest.mark.parametrize("page", PAGES)
def test_the_committed_page_is_the_generated_one(root, page) -> None:
    committed = (root / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert committed == PAGES[page](KNOWLEDGE), "regenerate: rca rules reference --write docs"


def test_every_row_of_the_field_guide_has_a_cause_and_no_cause_names_another_row() -> None:
    assert {row for row, _ in covered(KNOWLEDGE)} == ROWS


def test_the_rows_are_those_of_the_field_guide(shared) -> None:
    text = (shared / "FIELD_GUIDE.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| ([A-H]\d+) \|", text, re.MULTILINE)) == ROWS


def test_a_cause_is_told_with_its_conditions_fixes_and_links() -> None:
    page = causes_page(KNOWLEDGE)
    for cause in KNOWLEDGE.causes.values():
        section = page.split(f"\n## {cause.id}\n")[1].split("\n## ")[0]
        assert cause.title in section
        assert all(" ".join(fix.action.split()).rstrip(".") in section for fix in cause.fixes)
        assert all(" ".join(rule.says.split()) in section for rule in (*cause.evidence, *cause.contradicts))
    anchors = {re.sub(r"[^a-z0-9_-]", "", title) for title in re.findall(r"^## (.+)$", page, re.MULTILINE)}
    assert set(re.findall(r"\(#([^)]+)\)", page)) <= anchors

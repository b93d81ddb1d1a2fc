"""One cause in words, for a reader who wants the fix first and for one who wants every condition."""

from __future__ import annotations

from functools import cache

import pytest

from rca.explanation import WIDTH, explanation
from rca.facts.registry import CATALOGUE
from rca.report.words import catalogue, speaking
from rca.report.wrapping import columns
from rca.rules.languages import translations
from rca.rules.load import Knowledge, load
from rca.rules.snippets import plain


@cache
def knowledge() -> Knowledge:
    return load()


def told(cause: str, *, language: str = "en", **options: bool) -> str:
    with speaking(language, translations(language) if language != "en" else None):
        return explanation(knowledge(), cause, meanings=lambda: CATALOGUE, **options)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_cause_shows_a_name_of_a_value_or_a_line_that_is_too_long(language: str) -> None:
    for cause in knowledge().causes.values():
        text = told(cause.id, language=language)
        copied = {line.strip() for fix in cause.fixes for line in plain(fix.snippet).splitlines()}
        lines = [line for line in text.splitlines() if line.strip() not in copied]
        assert "{" not in "".join(lines), cause.id
        wide = [line for line in lines if columns(line) > WIDTH and len(line.split()) > 2]
        assert wide == [], cause.id


def test_the_fix_comes_before_the_evidence_and_conditions_only_where_asked_for() -> None:
    brief, full = told("numerics.fp16_overflow"), told("numerics.fp16_overflow", verbose=True)
    assert brief.index("What to change") < brief.index("Speaks for it") < brief.index("What would settle it")
    assert "1. Compute in bfloat16. It has the range of float32" in brief
    assert "nats" not in brief
    assert "rca explain numerics.fp16_overflow -v" in brief
    assert "0.5 nats: any of: config `precision` matches" in " ".join(full.split())


def test_evidence_in_the_words_of_a_fact_is_told_by_what_the_fact_means() -> None:
    says = " ".join(told("memory.leak").split())
    assert "{fact_says}" not in says
    meaning = CATALOGUE["memory.growing_place"].split(" (")[0]
    assert f"{meaning[:1].upper()}{meaning[1:30]}" in says


def test_a_healthy_run_is_no_symptom_and_symptoms_have_their_titles() -> None:
    symptoms = told("memory.leak").split("Symptoms it explains")[1].split("\n\n")[0].splitlines()[1:]
    assert "  - code.user_exception: Exception in the program" in symptoms
    assert not [line for line in symptoms if "none" in line]


def test_in_chinese_headings_rules_and_promises_are_chinese_and_ids_stay() -> None:
    text = told("numerics.fp16_overflow", language="zh")
    headings = ("section.change", "explain.for", "explain.against", "column.settle", "why.symptoms")
    assert all(catalogue("zh")[key] in text for key in headings)
    assert "用 bfloat16 计算。它的数值范围与 float32 相同" in text
    assert "stable（与 `test` 相同" in text
    assert "TrainingArguments(bf16=True, fp16=False, ...)" in text

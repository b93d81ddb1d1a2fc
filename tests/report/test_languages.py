"""A report in another language: all of it is, and what the run said is not."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from rich.cells import cell_len

from rca.collect.evidence import _VALUES
from rca.diagnosis import Diagnosis
from rca.facts.registry import CATALOGUE
from rca.report.json_report import DATA_ID
from rca.report.outline import place
from rca.report.registry import FORMATS
from rca.report.text import TextReport
from rca.report.translation import PROSE, translated
from rca.report.words import ENGLISH, LANGUAGES, catalogue, languages, speaking
from rca.rules.load import conditions, load

from .conftest import SAMPLES
from .page import Page

ROOT = Path(__file__).resolve().parents[2]
OTHERS = [language for language in languages() if language != ENGLISH]
_GAP = re.compile(r"\{[A-Za-z0-9_.]+\}")
_WORDS = re.compile(r"[A-Za-z][a-z]+(?: [a-z]+){2,}")
"""What is English in a text beyond names: three words in a row."""


def prose(part: BaseModel) -> Iterator[str]:
    """Every sentence of a diagnosis."""
    for name in type(part).model_fields:
        yield from _texts(getattr(part, name), prose_of=name in PROSE.get(type(part).__name__, ()))


def _texts(value: Any, *, prose_of: bool) -> Iterator[str]:
    if isinstance(value, BaseModel):
        yield from prose(value)
    elif isinstance(value, tuple):
        for item in value:
            yield from _texts(item, prose_of=prose_of)
    elif prose_of and isinstance(value, str) and value:
        yield value


def made_up(diagnosis: Diagnosis) -> dict[str, str]:
    return {text: f"译文{number}。" for number, text in enumerate(dict.fromkeys(prose(diagnosis)))}


def visible(form: str, text: str) -> str:
    """What a reader sees of a document, without marks of its format."""
    if form != "html":
        return text
    page = Page(text)
    data = {"script", "style"}
    texts = [run for e in page.elements if e.tag not in data and not set(e.above) & data for run in e.text[:1]]
    return "\n".join(texts) + "\n" + page.all("div", id="tools")[0].attributes["data-words"]


@pytest.mark.parametrize("language", OTHERS)
def test_prose_is_translated_and_nothing_else(sample: Diagnosis, language: str) -> None:
    with speaking(language, made_up(sample)):
        shown = translated(sample)
    assert set(prose(shown)) <= set(made_up(sample).values()) | {""}
    assert _without_prose(shown) == _without_prose(sample)
    assert translated(sample) is sample


@pytest.mark.parametrize("form", sorted(set(FORMATS) - {"json"}))
@pytest.mark.parametrize("name", sorted(SAMPLES))
@pytest.mark.parametrize("language", OTHERS)
def test_no_english_is_left_and_no_line_of_the_run_is_lost(language: str, name: str, form: str) -> None:
    sample = SAMPLES[name]
    english = FORMATS[form].render(sample)
    with speaking(language, made_up(sample)):
        document = FORMATS[form].render(sample)
    text = visible(form, document)
    assert [sentence for sentence in prose(sample) if _WORDS.search(sentence) and sentence in text] == []
    said_by_run = sample.model_dump_json()
    own = {part for known in catalogue(language).values() for part in _GAP.split(known)}
    parts = {part.strip(" .:,;()") for known in catalogue(ENGLISH).values() for part in _GAP.split(known)}
    left = [part for part in parts - own if _WORDS.search(part) and part in text and part not in said_by_run]
    assert left == []
    for key in {place(item) for hypothesis in sample.hypotheses for item in hypothesis.evidence_for if item.source}:
        assert document.count(key) == english.count(key)
    for line in {line.text for h in sample.hypotheses for item in h.evidence_for for line in item.context}:
        assert document.count(line) == english.count(line)


@pytest.mark.parametrize("language", OTHERS)
def test_the_page_names_its_language_and_keeps_its_data_and_lines(language: str, pages: dict[str, str]) -> None:
    for name, english in pages.items():
        with speaking(language, made_up(SAMPLES[name])):
            page = Page(FORMATS["html"].render(SAMPLES[name]))
        before = Page(english)
        assert page.all("html")[0].attributes["lang"] == catalogue(language)["language.tag"]
        assert _data(page) == _data(before)
        assert Counter("".join(e.text) for e in page.all("pre")) == Counter("".join(e.text) for e in before.all("pre"))


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("width", [60, 80])
def test_the_terminal_keeps_its_width(sample: Diagnosis, language: str, width: int) -> None:
    texts = set(made_up(sample)) - {sample.verdict.words}
    with speaking(language, {text: f"这是第{text[:30]}的译文，" * 9 for text in texts}):
        lines = TextReport(width=width, verbose=2).render(sample).splitlines()
    assert [line for line in lines if cell_len(line) > width and not line.startswith(" " * 10)] == []


@pytest.mark.parametrize("language", OTHERS)
def test_the_sentences_of_the_analysis_stand_in_its_source(language: str) -> None:
    sources = [file.read_text(encoding="utf-8") for file in (ROOT / "rca").rglob("*.py")]
    said = {run for text in (*sources, *catalogue(ENGLISH).values()) for run in _runs(re.sub(r'\bf"', "", text))}
    fixed = {part for key in _keys(language) for part in _GAP.split(key) if len(list(_runs(part))) > 4}
    assert len(fixed) > 100
    # What is put together from parts has a few runs of words that stand in no part.
    assert [part for part in fixed if len(said & set(_runs(part))) < 0.5 * len(set(_runs(part)))] == []


@pytest.mark.parametrize("language", OTHERS)
def test_what_a_rule_can_ask_for_is_translated(language: str) -> None:
    asked = {item.fact for cause in load().causes.values() for item in conditions(cause) if item.fact}
    meanings = {_VALUES.sub("", CATALOGUE[name]) for name in asked & set(CATALOGUE)}
    assert meanings - set(_keys(language)) == set()


def _keys(language: str) -> list[str]:
    return list(json.loads((LANGUAGES / "sentences" / f"{language}.json").read_text(encoding="utf-8")))


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    """Every three words in a row."""
    words = re.findall(r"[A-Za-z-]+", text)
    return zip(words, words[1:], words[2:], strict=False)


def _data(page: Page) -> str:
    return "".join(page.all("script", id=DATA_ID)[0].text)


def _without_prose(part: Any) -> Any:
    if isinstance(part, BaseModel):
        names = [name for name in type(part).model_fields if name not in PROSE.get(type(part).__name__, ())]
        return [_without_prose(getattr(part, name)) for name in names]
    return [_without_prose(item) for item in part] if isinstance(part, tuple) else part

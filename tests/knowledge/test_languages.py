"""The translations of the knowledge base: of texts that stand there, whole, and with code and gaps as they were."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from rca.rules.languages import translations
from rca.rules.load import LANGUAGES, builtin_folder, load, remedies
from rca.rules.untranslated import Text, kept_parts, stale, texts, untranslated

FOLDER = builtin_folder() / LANGUAGES
LANGUAGE_NAMES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
HAN = re.compile("[\u4e00-\u9fff]")
KEY = re.compile(r'^"(?:[^"\\]|\\.)*"(?=: ")', re.M)


@pytest.fixture(scope="module")
def wanted() -> list[Text]:
    return list(texts(load(), remedies()))


def files(language: str) -> list[Path]:
    return sorted((FOLDER / language).glob("*.yaml"))


@pytest.mark.parametrize("language", LANGUAGE_NAMES)
def test_nothing_is_translated_that_no_longer_stands_in_the_knowledge_base(language, wanted) -> None:
    assert stale(wanted, translations(language)) == []


@pytest.mark.parametrize("language", LANGUAGE_NAMES)
def test_every_text_is_translated(language, wanted) -> None:
    missing = untranslated(wanted, translations(language))
    assert [f"{item.area}: {item.kind}: {item.text}" for item in missing] == []


@pytest.mark.parametrize("language", LANGUAGE_NAMES)
def test_gaps_code_and_names_are_kept(language) -> None:
    changed = [text for text, other in translations(language).items() if kept_parts(text) != kept_parts(other)]
    assert changed == []


@pytest.mark.parametrize("language", LANGUAGE_NAMES)
def test_every_text_stands_once_in_the_file_of_its_area(language, wanted) -> None:
    areas = {item.text: item.area for item in wanted}
    found = Counter()
    for file in files(language):
        rows = translations_of(file)
        found.update(rows)
        assert [text for text in rows if areas.get(text, file.stem) != file.stem] == [], file
    assert [text for text, count in found.items() if count > 1] == []


def test_chinese_texts_are_chinese() -> None:
    assert [other for other in translations("zh").values() if not HAN.search(other)] == []


def translations_of(file: Path) -> list[str]:
    """The keys as they are written, a repeated one twice."""
    return [key[1:-1].replace('\\"', '"').replace("\\\\", "\\") for key in KEY.findall(file.read_text("utf-8"))]

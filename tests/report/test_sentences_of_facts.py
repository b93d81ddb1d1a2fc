"""The sentences of facts in other languages: each is said by a fact, with its gaps, and no meaning is missing."""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import rca.facts
from rca.collect.evidence import _VALUES
from rca.facts.registry import CATALOGUE
from rca.report.words import LANGUAGES, shown, speaking

FOLDER = LANGUAGES / "sentences"
OTHERS = sorted(folder.name for folder in FOLDER.iterdir() if folder.is_dir())
GAP = re.compile(r"\{([A-Za-z0-9_.]+)\}")


@cache
def of_facts(language: str) -> dict[str, str]:
    """The sentences of facts in one language."""
    return json.loads((FOLDER / language / "facts.json").read_text(encoding="utf-8"))


def pairs(text: str) -> list[tuple[str, str]]:
    words = re.findall(r"[\w'/%.-]+", text.lower())
    return list(pairwise(words))


@cache
def said_by_facts() -> frozenset[tuple[str, str]]:
    """Every two words that stand beside each other in the code of the facts."""
    files = Path(rca.facts.__file__).parent.rglob("*.py")
    return frozenset(pair for file in files for pair in pairs(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize("language", OTHERS)
def test_what_every_fact_means_is_said(language) -> None:
    known = of_facts(language).keys() | json.loads((FOLDER / f"{language}.json").read_text(encoding="utf-8")).keys()
    assert sorted({_VALUES.sub("", meaning) for meaning in CATALOGUE.values()} - known) == []


@pytest.mark.parametrize("language", OTHERS)
def test_gaps_of_a_sentence_are_those_of_its_translation(language) -> None:
    rows = of_facts(language).items()
    assert [key for key, text in rows if not text or sorted(GAP.findall(key)) != sorted(GAP.findall(text))] == []


@pytest.mark.parametrize("language", OTHERS)
def test_no_sentence_is_kept_that_no_fact_says(language) -> None:
    inside = {key: [pair for part in GAP.split(key)[::2] for pair in pairs(part)] for key in of_facts(language)}
    assert [key for key, words in inside.items() if words and not said_by_facts().intersection(words)] == []


@pytest.mark.parametrize(
    ("sentence", "chinese"),
    [
        (
            "The loss scale was halved 56 times, 14 times in a row at most.",
            "损失缩放因子减半了 56 次，最多连续 14 次。",
        ),
        ("3 processes keep a core busy, e.g. python.", "3 个进程占满一个核，例如 python。"),
        (
            "The gradient norm is NaN at step 12 and stays non-finite.",
            "梯度范数在 step 12 为 NaN，此后一直是非有限值。",
        ),
        ("samples whose labels are all ignored; log text", "标签全部被忽略的样本；日志文本"),
    ],
)
def test_a_fact_is_said_in_chinese_with_its_numbers(sentence, chinese) -> None:
    with speaking("zh"):
        assert shown(sentence) == chinese

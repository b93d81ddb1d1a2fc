"""All texts come from one catalogue a language, and every language has the same keys with the same gaps to fill."""

from __future__ import annotations

import re
import string
from typing import get_args

import pytest

from rca.diagnosis import ExperimentVerdict, Status, Verdict
from rca.report.html import TEMPLATES
from rca.report.words import ENGLISH, catalogue, count, languages, level, replaced, say, speaking, strength

SOURCES = {
    file.name: file.read_text(encoding="utf-8")
    for file in [*TEMPLATES.glob("*.html"), *TEMPLATES.parent.rglob("*.py"), *TEMPLATES.parents[1].glob("*.py")]
    if file.name != "words.py"
}
SCRIPT = (TEMPLATES / "report.js").read_text(encoding="utf-8")
TEXTS = catalogue(ENGLISH)
OTHERS = [language for language in languages() if language != ENGLISH]


@pytest.mark.parametrize("name", sorted(name for name in SOURCES if name.endswith(".html")))
def test_templates_hold_no_words(name: str) -> None:
    text = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", "\0", SOURCES[name], flags=re.DOTALL)
    attributes = re.findall(r'(?:aria-label|title|placeholder|alt)="([^"]*[A-Za-z]{2}[^"]*)"', text)
    shown = re.findall(r"[A-Za-z]{2,}", re.sub(r"<[^>]*>", " ", text))
    assert [word for word in shown if word != "rca"] == []
    assert attributes == []


def test_every_key_that_is_asked_for_exists() -> None:
    whole, begun, counted = _asked()
    assert len(whole) > 100
    assert whole - set(TEXTS) == set()
    assert [start for start in begun if not any(key.startswith(start) for key in TEXTS)] == []
    assert {f"count.{noun}_other" for noun in counted} - set(TEXTS) == set()


def test_every_key_is_asked_for() -> None:
    whole, begun, counted = _asked()
    named = {word for source in SOURCES.values() for word in re.findall(r"""["']([a-z_0-9.]+)["']""", source)}
    used = {
        key
        for key in TEXTS
        if key in named | whole
        or key.startswith(tuple(begun))
        or re.sub("_(one|other)$", "", key) in {f"count.{noun}" for noun in counted}
    }
    assert set(TEXTS) - used == set()


def test_the_script_of_the_page_has_its_words() -> None:
    asked = set(re.findall(r"\bwords\.(\w+)", SCRIPT))
    assert asked == {key.removeprefix("script.") for key in TEXTS if key.startswith("script.")}


@pytest.mark.parametrize("language", OTHERS)
def test_every_language_has_the_same_keys_and_gaps(language: str) -> None:
    texts = catalogue(language)
    assert set(texts) - set(TEXTS) == set()
    assert {key for key in set(TEXTS) - set(texts) if not key.endswith("_one")} == set()
    assert {key: _gaps(text) for key, text in texts.items()} == {key: _gaps(TEXTS[key]) for key in texts}
    assert [key for key, text in texts.items() if not text.strip()] == []


def test_every_status_has_its_word() -> None:
    assert all(f"hypothesis.{status}" in TEXTS for status in get_args(Status))
    assert all(f"experiment.{verdict}" in TEXTS for verdict in get_args(ExperimentVerdict))
    assert all(f"status.{s}" in TEXTS for s in get_args(Verdict.model_fields["status"].annotation))


def test_values_are_filled_in_and_may_hold_braces() -> None:
    assert say("rank", rank="{0}") == "rank {0}"
    with pytest.raises(KeyError):
        say("no such key")


def test_counts_and_strengths() -> None:
    assert (count(1, "file"), count(1_200, "file")) == ("1 file", "1,200 files")
    assert (replaced("mail", 2), replaced("ip", 1), replaced("other", 3)) == (
        "2 mail addresses",
        "1 IP address",
        "other: 3",
    )
    assert [strength(w) for w in (0.1, -0.7, 1.5)] == ["weak", "moderate", "strong"]
    assert [level(w) for w in (0.1, -0.7, 1.5)] == [1, 2, 3]


@pytest.mark.parametrize("language", OTHERS)
def test_a_language_holds_where_it_is_spoken_and_no_further(language: str) -> None:
    with speaking(language):
        assert say("language.tag") == catalogue(language)["language.tag"] != "en"
        assert count(1, "file") == catalogue(language)["count.file_other"].format(count=1)
    assert say("language.tag") == "en"


def _asked() -> tuple[set[str], set[str], set[str]]:
    """Keys that are asked for as a whole, beginnings of keys that are completed by a value, and nouns."""
    text = "\n".join(SOURCES.values())
    whole = set(re.findall(r"""(?<!\w)say\(\s*["']([a-z_.0-9]+[a-z_0-9])["']\s*[,)]""", text))
    begun = {"collect.", "replaced.", "script.", "strength."}
    begun |= set(re.findall(r"""["']([a-z_]+\.)["']\s*[+~]""", text)) | set(
        re.findall(r"""say\(f"([a-z_]+\.)\{""", text)
    )
    begun |= {group + "." for group in re.findall(r"""\bword\(["']([a-z]+)["']""", text)}
    counted = set(re.findall(r"""count\([^"']*(?:["'][^"']*["'][^"']*)?,\s*["']([a-z]+)["']\)""", text))
    return whole, begun, counted


def _gaps(text: str) -> list[str]:
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name is not None)

"""Every text of the reports that is not part of the diagnosis: one catalogue a language, English where none is chosen.

A catalogue is `languages/<code>.json`, a flat object of texts by key, as translation platforms read and write it: it is
parsed in 0.2 ms, where the same as YAML takes 5. `{name}` is a value that is filled in; a key that ends in `_one` or
`_other` (the plural categories of CLDR) is chosen by a number, and languages without a plural have `_other` alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import NamedTuple

from rca.report.sentences import Sentences

LANGUAGES = Path(__file__).parent / "languages"
ENGLISH = "en"


def languages() -> tuple[str, ...]:
    """The languages there is a catalogue of, English first."""
    return (ENGLISH, *sorted(file.stem for file in LANGUAGES.glob("*.json") if file.stem != ENGLISH))


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """Key -> text in one of the `languages`, as its file has them."""
    texts: dict[str, str] = json.loads((LANGUAGES / f"{language}.json").read_text(encoding="utf-8"))
    return texts


@cache
def _of_the_analysis(language: str) -> Mapping[str, str]:
    """Sentences that the analysis writes into a diagnosis, and notices of what was cut, and what they are called."""
    folder, own = LANGUAGES / "sentences" / language, LANGUAGES / "sentences" / f"{language}.json"
    known = {catalogue(ENGLISH)[key]: text for key, text in catalogue(language).items() if key.startswith("trim.")}
    for file in (*sorted(folder.glob("*.json")), own):
        known |= json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return known


class _Language(NamedTuple):
    code: str
    sentences: Sentences | None
    """What the sentences of a diagnosis, which are English, are in this language."""


_ENGLISH = _Language(ENGLISH, None)
_LANGUAGE: ContextVar[_Language] = ContextVar("language")


@contextmanager
def speaking(language: str, translations: Mapping[str, str] | None = None) -> Iterator[None]:
    """What is rendered inside is in one of the `languages`; `translations` are those of the knowledge base."""
    known = {} if language == ENGLISH else {**_of_the_analysis(language), **(translations or {})}
    before = _LANGUAGE.set(_Language(language, Sentences(known) if known else None))
    try:
        yield
    finally:
        _LANGUAGE.reset(before)


def sentences() -> Sentences | None:
    """How sentences of a diagnosis are shown; None where they are shown as they are."""
    return _LANGUAGE.get(_ENGLISH).sentences


def say(key: str, **values: object) -> str:
    """The text behind `key` with its values filled in; KeyError for a key that does not exist."""
    text = _texts()[key]
    return text.format(**values) if values else text


def count(amount: int, noun: str) -> str:
    """`1 file`, `14 files`; `noun` is a key of the catalogue after `count.`."""
    return _counted(f"count.{noun}", amount)


def replaced(kind: str, amount: int) -> str:
    """`3 host names`; a kind without a word of its own stays as it is."""
    key = f"replaced.{kind}"
    return _counted(key, amount) if f"{key}_other" in _texts() else f"{kind}: {amount:,}"


def word(group: str, value: str) -> str:
    """The word for a value of data, such as a severity; one that has no word stays as it is."""
    return _texts().get(f"{group}.{value}", value)


def shown(text: str) -> str:
    """A sentence of a diagnosis as the language has it."""
    known = sentences()
    return text if known is None else known(text)


def paragraph(*texts: str) -> str:
    """Sentences one after another, each with its full stop, which rules may leave out."""
    told = ""
    for text in filter(None, texts):
        told += (" " if told and told[-1].isascii() else "") + text
        told += "" if text[-1] in ".!?:)。！？：）…" else say("text.stop")
    return told


def what_to_collect() -> tuple[str, ...]:
    """What to record for a run that left too little, when no candidate asks for something in particular."""
    return tuple(text for key, text in _texts().items() if key.startswith("collect."))


def script_words() -> str:
    """What the script of the page says, as JSON."""
    own = {key.removeprefix("script."): text for key, text in _texts().items() if key.startswith("script.")}
    return json.dumps(own, ensure_ascii=False)


def level(weight: float) -> int:
    """How strong a weight is, 1 to 3: 3 from 1.5 nats (odds x 4.5), 2 from 0.7 (odds x 2)."""
    size = abs(weight)
    return 3 if size >= 1.5 else 2 if size >= 0.7 else 1


def strength(weight: float) -> str:
    """A weight in words: strong, moderate, weak."""
    return say(f"strength.{level(weight)}")


def _texts() -> Mapping[str, str]:
    return _whole(_LANGUAGE.get(_ENGLISH).code)


@cache
def _whole(language: str) -> Mapping[str, str]:
    """The catalogue, in English where a text is not translated yet."""
    return {**catalogue(ENGLISH), **catalogue(language)}


def _counted(key: str, amount: int) -> str:
    own = catalogue(_LANGUAGE.get(_ENGLISH).code)
    texts = own if f"{key}_other" in own else catalogue(ENGLISH)
    singular = texts.get(f"{key}_one") if amount == 1 else None
    return (singular or texts[f"{key}_other"]).format(count=f"{amount:,}")

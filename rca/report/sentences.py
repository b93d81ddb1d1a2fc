"""English sentences to those of another language, also where values were filled in."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

_GAP = re.compile(r"\{([A-Za-z0-9_.]+)\}")
_ENDS = re.compile(r"(?<=[.!?]) +(?=\S)")
_OPENS = re.compile(r"(?:^|[.:!?(] ?)$")
"""Ends of what may stand before several sentences; elsewhere a gap ends where its sentence does."""
_PARTS = re.compile(r"[.!?;] +\S")
_TOGETHER = 4
"""Sentences that may stand together in one key."""


class _Template(NamedTuple):
    names: tuple[str, ...]
    """What is filled in, in order."""
    between: tuple[str, ...]
    """The fixed texts before, between and after, one more than names."""
    translation: str


class Sentences:
    """What a whole text, its sentences, or a title before a colon are called in the language.

    A key with `{name}` in it stands for every text with something at that place; what was there is put at the same
    name in the translation, and is itself translated where it is known. Matching takes linear time.
    """

    def __init__(self, translations: Mapping[str, str]) -> None:
        self._whole = translations
        self._templates: defaultdict[str, list[_Template]] = defaultdict(list)
        self._known: dict[str, str | None] = {}
        for key, translation in translations.items():
            between = _GAP.split(key)
            if len(between) > 1 and translation:
                names, fixed = tuple(between[1::2]), tuple(between[::2])
                self._templates[_first_word(fixed[0])].append(_Template(names, fixed, translation))
        for group in self._templates.values():
            group.sort(key=lambda item: -sum(map(len, item.between)))  # the most telling first

    def __call__(self, text: str) -> str:
        """Return the text in the language, or as it is where nothing is known of it."""
        listed = None if text in self._whole else self._listed(text, "; ", "；")
        return listed or self._found(text) or self._pieces(text) or text

    def _found(self, text: str) -> str | None:
        if text not in self._known:
            self._known[text] = self._whole.get(text) or self._alike(text) or self._filled(text)
        return self._known[text]

    def _alike(self, text: str) -> str | None:
        """A text that is known with another first letter, or with a full stop more or less."""
        first, rest = text[:1], text[1:]
        for start in (first.lower(), first.upper()):
            if known := self._whole.get(start + rest):
                return known
            if text.endswith(".") and (known := self._whole.get(start + rest[:-1])):
                return known + "。"
            if text[-1:] not in ".!?" and (known := self._whole.get(start + rest + ".")):
                return known.rstrip("。")
        return None

    def _filled(self, text: str) -> str | None:
        start = _first_word(text)
        for group in dict.fromkeys((start, "")):
            for template in self._templates.get(group, ()):
                values = _values(text, template.between)
                if values is not None:
                    shown = {name: self(value) for name, value in zip(template.names, values, strict=True)}
                    return _GAP.sub(lambda gap, shown=shown: shown.get(gap[1], gap[0]), template.translation)  # type: ignore[misc]
        return None

    def _phrase(self, text: str) -> str | None:
        """A phrase, or a list of phrases all of which are known."""
        return self._listed(text, ", ", "、") or self._listed(text, "; ", "；") or self._found(text)

    def _listed(self, text: str, mark: str, own: str) -> str | None:
        """A list of what is known, before one phrase is taken whose value would be the rest of the list."""
        items = text.split(mark)
        found = [self._found(item) for item in items] if len(items) > 1 else []
        return own.join(map(str, found)) if found and all(found) else None

    def _pieces(self, text: str) -> str | None:
        """The text with those of its sentences translated that are known, and a known title before a colon."""
        title, colon, rest = text.partition(": ")
        if colon and (known := self._found(title)) is not None:
            return f"{known}：{self(rest)}" if not known.isascii() else f"{known}: {self(rest)}"
        if (listed := self._phrase(text)) is not None:
            return listed
        if text.endswith(".") and (known := self._phrase(text[:1].lower() + text[1:-1])) is not None:
            return known + "。"
        if text[-1:] not in ".!?" and (known := self._found(text + ".")) is not None:
            return known.rstrip("。")
        pieces = _ENDS.split(text)
        shown, found, at = "", False, 0
        while at < len(pieces):
            ends = range(min(len(pieces), at + _TOGETHER), at, -1)
            known, end = next(
                ((known, end) for end in ends if (known := self._found(" ".join(pieces[at:end]))) is not None),
                (None, at + 1),
            )
            part = known or pieces[at]
            shown += (" " if shown and shown[-1].isascii() else "") + part
            found, at = found or known is not None, end
        return shown if found else None


def _first_word(text: str) -> str:
    """The first word, where something follows it: a gap must not begin inside."""
    word, space, _ = text.partition(" ")
    return word if space else ""


def _values(text: str, between: tuple[str, ...]) -> list[str] | None:
    """What stands between the fixed texts, each as short as it can be and none empty; None where they do not fit."""
    first, *middle, last = between
    if not (text.startswith(first) and text.endswith(last)):
        return None
    at, end = len(first), len(text) - len(last)
    values = []
    for fixed in middle:
        found = text.find(fixed, at + 1, end)
        if found < 0:
            return None
        values.append(text[at:found])
        at = found + len(fixed)
    values.append(text[at:end])
    whole = at < end and all(
        _OPENS.search(before) or not _PARTS.search(value) for before, value in zip(between, values, strict=False)
    )
    return values if whole else None

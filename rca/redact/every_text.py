"""Every text of a diagnosis, wherever it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from rca.diagnosis import Diagnosis

_CODED = frozenset(
    {
        "schema_version",
        "rca_version",
        "generated",
        "id",
        "evidence",
        "cause",
        "status",
        "kind",
        "role",
        "severity",
        "group",
    }
    | {"mode", "domain", "verdict", "explained_by", "signs", "references"}
)
"""Fields that hold ids, times and words of a fixed vocabulary, never text of the run."""
_PLACES = frozenset({"source", "path"})
_NAMED = frozenset({"value", "baseline"})
"""Fields of a setting whose name says what they hold."""
_ROWS = frozenset({"details", "rows"})
"""Fields whose rows begin with a name."""


class Change(Protocol):
    """What becomes of the texts."""

    def text(self, text: str) -> str:
        """Of a text."""

    def value(self, name: str, value: str) -> str:
        """Of the value of a setting."""

    def place(self, path: str) -> str:
        """Of the path of a source."""

    def lines(self, lines: Sequence[str]) -> list[str]:
        """Of lines that follow one another."""

    def version(self, name: str, version: str) -> str:
        """Of the version of a package."""


def changed(diagnosis: Diagnosis, change: Change) -> Diagnosis:
    """The diagnosis with `change` applied to every text in it, except ids and words of a fixed vocabulary."""
    return diagnosis.model_validate(_mapped(diagnosis.model_dump(), change))


def map_text(diagnosis: Diagnosis, change: Callable[[str], str]) -> Diagnosis:
    """The same for a change that is the same for all texts."""
    return changed(diagnosis, _Alike(change))


class _Alike:
    """One change for texts of every kind."""

    def __init__(self, change: Callable[[str], str]) -> None:
        self.text = self.place = change

    def value(self, _name: str, value: str) -> str:
        return self.text(value)

    version = value

    def lines(self, lines: Sequence[str]) -> list[str]:
        return [self.text(line) for line in lines]


def _mapped(value: Any, change: Change) -> Any:
    if isinstance(value, str):
        return change.text(value)
    if isinstance(value, dict):
        return _fields(value, change)
    if isinstance(value, (list, tuple)):
        return tuple(_mapped(item, change) for item in value)
    return value


def _fields(fields: Mapping[str, Any], change: Change) -> dict[str, Any]:
    context = fields.get("context")
    lines = _context(context, change) if context else {}
    named = isinstance(fields.get("name"), str) and "value" in fields
    found: dict[str, Any] = {}
    for key, item in fields.items():
        if key in _CODED and isinstance(item, (str, tuple)):
            found[key] = item
        elif key == "context" and context:
            found[key] = tuple({**row, "text": lines[row["text"]]} for row in context)
        elif key in _PLACES and isinstance(item, str):
            found[key] = change.place(item)
        elif key == "text" and item in lines:
            found[key] = lines[item]
        elif named and key in _NAMED and isinstance(item, str):
            found[key] = (change.version if fields.get("group") == "packages" else change.value)(fields["name"], item)
        elif key in _ROWS and isinstance(item, (list, tuple)):
            found[key] = tuple(_row(row, change) for row in item)
        elif key == "settings" and isinstance(item, dict):
            found[key] = {
                name: change.value(name, value) if isinstance(value, str) else _mapped(value, change)
                for name, value in item.items()
            }
        else:
            found[key] = _mapped(item, change)
    return _without_words(fields, found)


def _context(rows: Sequence[Mapping[str, Any]], change: Change) -> dict[str, str]:
    texts = [str(row["text"]) for row in rows]
    return dict(zip(texts, change.lines(texts), strict=True))


def _row(row: Any, change: Change) -> Any:
    if not isinstance(row, (list, tuple)) or not row or not all(isinstance(cell, str) for cell in row):
        return _mapped(row, change)
    return (change.text(row[0]), *(change.value(row[0], cell) for cell in row[1:]))


def _without_words(before: Mapping[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Take out of the template of a line what was replaced in the line itself: masking may have hidden its shape."""
    key = "template" if "template" in before else "name" if before.get("kind") == "template" else ""
    if key and isinstance(before.get("text"), str) and before["text"] != after["text"]:
        words = str(after[key]).split(" ")
        after[key] = " ".join(word if _stands_in(word, after["text"]) else "<*>" for word in words)
    return after


def _stands_in(word: str, text: str) -> bool:
    """Whether a word of a template, but for what was masked in it, is in the text."""
    at = 0
    while at < len(word):
        start = word.find("<", at)
        end = word.find(">", start) if start >= 0 else -1
        if word[at : start if end >= 0 else len(word)] not in text:
            return False
        at = end + 1 if end >= 0 else len(word)
    return True

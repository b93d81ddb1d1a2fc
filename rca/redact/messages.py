"""Texts for the person at the terminal: secrets are replaced, names of places stay, so that they can be typed again."""

from __future__ import annotations

from collections.abc import Sequence

from rca.redact.redactor import SECRET
from rca.redact.secrets import secret_spans, spread


def without_secrets(text: str) -> str:
    """The text with its secrets replaced, and nothing else."""
    return _replaced(text, secret_spans(text))


def command_without_secrets(words: Sequence[str]) -> list[str]:
    """The words of a command; an option may name the word behind it as a secret."""
    shown = list(words)
    for number, (start, end) in reversed(list(spread(words, " "))):
        shown[number] = shown[number][:start] + SECRET + shown[number][end:]
    return shown


def _replaced(text: str, spans: Sequence[tuple[int, int]]) -> str:
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts += [text[at:start], SECRET]
        at = end
    return "".join([*parts, text[at:]])

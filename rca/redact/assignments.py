"""Secrets by the name they are assigned to: `password=...`, `"api_key": "..."`, `--hub-token ...`.

Names of machine learning (`pad_token`, `max_tokens`, `key_padding_mask`) and harmless values (`None`, `True`, numbers,
placeholders, ordinary words after a colon) are left alone: a log line without its values is no evidence.
"""

from __future__ import annotations

import re as bounded
from collections.abc import Iterator

import re2 as re

from rca.redact.vocabulary import HARMLESS_VALUES, NOT_THE_VALUE, REFERENCES, TOKEN_OF

_ASSIGNED = re.compile(
    r"(?i)([a-z0-9_.\-]{0,48}(?:api_?-?key|access_?-?key|secret_?-?key|private_?-?key|account_?-?key|auth_?-?key|"
    r"encryption_?-?key|wandb_?-?key|secret|passwo?r?d|pwd|passphrase|token|credentials?)[a-z0-9_\-]{0,24})"
    r"([\"']?\]?\s{0,4}(?:=>|[=:]{1,2})\s{0,4}|\s{1,2})([\"'`]?)([^\s\"'`,;&<>(){}\[\]]{4,512})"
)
_QUOTED = re.compile(r"(?i)(?:passwo?r?d|pwd|passphrase|secret)[\"']?\s{0,4}(?:=>|[=:]{1,2})\s{0,4}[\"'`]")


def assigned(text: str) -> Iterator[tuple[int, int]]:
    """Spans of values that were assigned to a secret's name."""
    for match in _ASSIGNED.finditer(text):
        name, joint, quote, value = match.groups()
        if joint.strip(" \t\"'") == "" and not name.startswith("--") and quote == "":
            continue
        if _names_secret(name, value) and _is_secret(
            name, value, certain=bool(quote) or "=" in joint or name.startswith("--")
        ):
            yield match.span(4)
    for opening in _QUOTED.finditer(text):
        yield from _quoted(text, opening.start())


def _quoted(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Quoted passwords, which may hold spaces, as detect-secrets finds them in a short window."""
    from detect_secrets.plugins.keyword import KeywordDetector

    window = text[start : start + 200]
    for value in KeywordDetector().analyze_string(window):
        at = window.find(value)
        if at >= 0 and len(value) >= 4 and value.lower() not in HARMLESS_VALUES and not value.startswith(REFERENCES):
            yield start + at, start + at + len(value)


def _names_secret(name: str, value: str) -> bool:
    words = [word for word in bounded.split(r"[_.\-]+", bounded.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()) if word]
    if not words or words[-1] in NOT_THE_VALUE or words[-1].endswith("tokens"):
        return False
    if "token" in words:
        before = words[: words.index("token")]
        return bool(TOKEN_OF & set(before)) if before else len(value) >= 16 and not value.isalpha()
    return not any(word.startswith("token") or (word.endswith("token") and word != "authtoken") for word in words)


def _is_secret(name: str, value: str, *, certain: bool) -> bool:
    lowered = value.lower().rstrip(".:")
    if lowered in HARMLESS_VALUES or lowered.startswith(REFERENCES) or _is_number(lowered):
        return False
    plain_word = value.rstrip(".:!?").isalpha() and (value[1:].islower() or value.isupper())
    if bounded.search(r"(?i)pass|pwd|secret(?!_?-?key)", name):
        return (certain and not value.startswith("/")) or (not plain_word and len(value) >= 6)
    if "/" in value[:1] or len(value) < 8:
        return False
    return not plain_word or len(value) >= 24


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

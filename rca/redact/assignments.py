"""Secrets by the name they are assigned to: `password=...`, `"api_key": "..."`, `--hub-token ...`.

Names of machine learning (`pad_token`, `max_tokens`, `key_padding_mask`) and harmless values (`None`, `True`, numbers,
placeholders, ordinary words after a colon) are left alone: a log line without its values is no evidence.
"""

from __future__ import annotations

import re as bounded
from collections.abc import Iterator

import re2 as re

from rca.redact.vocabulary import HARMLESS_VALUES, NOT_THE_VALUE, OTHER_KEYS, REFERENCES, TOKEN_OF

_ASSIGNED = re.compile(
    r"(?i)([a-z0-9_.\-]{0,48}(?:api_?-?key|access_?-?key|secret_?-?key|private_?-?key|account_?-?key|auth_?-?key|"
    r"app(?:lication)?_?-?key|routing_?-?key|signing_?-?key|license_?-?key|client-key-data|"
    r"encryption_?-?key|wandb_?-?key|secret|passwo?r?d|pwd|passphrase|[_\-]pass|token|credentials?|[_\-]key)[a-z0-9_\-]{0,24})"
    r"([\"']?\]?\s{0,4}(?:=>|[=:]{1,2})\s{0,4}(?:[a-z]{0,12}str\()?|[\"'],\s{0,4}|\s{1,8})([\"'`]?)"
    r"([^\s\"'`,;&<>(){}\[\]]{4,})"
)
_QUOTED = re.compile(r"(?i)(?:passwo?r?d|pwd|passphrase|secret)[\"']?\s{0,4}(?:=>|[=:]{1,2})\s{0,4}[\"'`]")
_NAME = bounded.compile(r"[A-Za-z_]+(?:\.[a-z_]+)*")


def assigned(text: str) -> Iterator[tuple[int, int]]:
    """Spans of values that were assigned to a secret's name."""
    for match in _ASSIGNED.finditer(text):
        name, joint, quote, value = match.groups()
        option = name.startswith("--")
        apart = joint.strip(" \t\r\n") == ""
        if (apart or "," in joint) and not option:
            continue
        if (option and value.startswith("--")) or (not quote and _is_code(value, text[match.end(4) :][:1])):
            continue
        if _is_secret(name, value, certain=bool(quote) or "=" in joint or option):
            yield match.span(4)
    for opening in _QUOTED.finditer(text):
        yield from _quoted(text, opening.start())


def is_secret(name: str, value: str) -> bool:
    """Whether a setting of that name and value is a secret, all of it."""
    last = name.rsplit(" ", 1)[-1]
    return len(value) >= 4 and names_secrets(last) and _is_secret(last, value, certain=True)


def names_secrets(name: str) -> bool:
    """Whether a name may be that of a secret, whatever its value."""
    return _ASSIGNED.search(f"{name}=xxxx") is not None


def _is_code(value: str, following: str) -> bool:
    """Whether this is an expression of a program: `load_key(path)`, `args.hub_token`."""
    return bool(_NAME.fullmatch(value)) and (following == "(" or "." in value)


def _quoted(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Quoted passwords, which may hold spaces, as detect-secrets finds them in a short window."""
    from detect_secrets.plugins.keyword import KeywordDetector

    window = text[start : start + 200]
    for value in KeywordDetector().analyze_string(window):
        at = window.find(value)
        if at >= 0 and len(value) >= 4 and value.lower() not in HARMLESS_VALUES and not value.startswith(REFERENCES):
            yield start + at, start + at + len(value)


def _is_secret(name: str, value: str, *, certain: bool) -> bool:
    kind = _kind(name, value)
    lowered = value.lower().rstrip(".:")
    if kind == "" or lowered in HARMLESS_VALUES or lowered.startswith(REFERENCES) or _is_number(lowered):
        return False
    plain_word = value.rstrip(".:!?").isalpha() and (value[1:].islower() or value.isupper())
    if kind == "password":
        return (certain and not value.startswith("/")) or (not plain_word and len(value) >= 6)
    if kind in ("some key", "pass"):
        return (
            len(value) >= (16 if kind == "some key" else 6)
            and any(c.isdigit() for c in value)
            and any(c.isalpha() for c in value)
        )
    if "/" in value[:1] or len(value) < 8:
        return False
    return not plain_word or len(value) >= 24


def _kind(name: str, value: str) -> str:
    """`password`, `pass`, `key`, or `some key` where only the end of a name speaks; empty for no secret."""
    words = [word for word in bounded.split(r"[_.\-]+", bounded.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()) if word]
    if not words or words[-1] in NOT_THE_VALUE or words[-1].endswith("tokens"):
        return ""
    if "token" in words and words[-1] not in ("secret", "key", "password"):
        before = words[: words.index("token")]
        said = bool(TOKEN_OF & set(before)) if before else len(value) >= 16 and not value.isalpha()
        return "key" if said else ""
    if any(
        (word.startswith("token") and word != "token")
        or (word.endswith("token") and word not in ("token", "authtoken"))
        for word in words
    ):
        return ""
    if bounded.search(r"(?i)passw|passphrase|pwd|secret(?!_?-?key)", name):
        return "password"
    if words[-1] == "pass":
        return "pass"
    if not bounded.search(r"(?i)" + _SURE, name):
        return "some key" if name.isupper() and not OTHER_KEYS & set(words) else ""
    return "key"


_SURE = (
    r"(?:api|access|secret|private|account|auth|app|application|routing|signing|license|encryption|wandb)_?-?key|"
    r"client-key-data|credential"
)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

"""Where the secrets are in a line."""

from __future__ import annotations

import re as bounded
from functools import lru_cache
from typing import Any, NamedTuple

import re2 as re

from rca.redact.assignments import assigned

_NAME = re.compile(r"(?i)key|token|secret|passw|pwd|passphrase|credential")
"""Without one of these words nothing is assigned to a secret's name."""
_SHAPE = re.compile(
    r"(?i)aws.{0,60}[\"'=]|authorization|bearer|AccountKey|_authToken|://[^/\s]*@|PRIVATE KEY|"
    r"[?&](?:x-amz-|x-goog-|sig|token|access_token|api_?key|key|auth|password|awsaccess)|"
    r"A3T|A[BKS]IA|ACCA|eyJ|gh[pousr]_|github_pat|gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent)-|gloas-|GR1348941|"
    r"\bhf_[a-z0-9]{20}|api_org_|wandb.{0,60}[0-9a-f]{40}|wandb_v|\br8_[a-z0-9]{20}|nvapi-|dapi[0-9a-f]{8}|KGAT_|"
    r"\bsk-[\w-]{16}|[rs]k_live|gsk_|AIza|ya29|SG\.|xox|xapp|hooks\.slack|webhooks|sq0csp|pypi-AgE|npm_[a-z0-9]{20}|"
    r"dckr_|hvs\.|\dQ~"
)
"""Without one of these no detector finds anything; most lines hold none, and the detectors take 0.2 s to load."""
_KEY_BLOCK = re.compile(
    r"-----BEGIN[A-Z0-9 ]{0,40} PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END[A-Z0-9 ]{0,40}-----|$|\z)"
)
_KEY_LINE = re.compile(r"\s*[A-Za-z0-9+/]{60,76}={0,2}\s*")
_REST_OF_TOKEN = bounded.compile(r"[A-Za-z0-9_\-+/=.~]*")

Span = tuple[int, int]


class _Pattern(NamedTuple):
    detector: Any
    compiled: Any


def secret_spans(text: str) -> list[Span]:
    """Spans of secrets, in order, not overlapping."""
    found: list[Span] = []
    if _is_key_line(text):
        found.append((0, len(text)))
    if _NAME.search(text):
        found += assigned(text)
    if _SHAPE.search(text):
        found += [match.span() for match in _KEY_BLOCK.finditer(text)]
        for pattern in _patterns():
            found += _of_pattern(pattern, text)
    return _merged(found)


def _of_pattern(pattern: _Pattern, text: str) -> list[Span]:
    spans = []
    for match in pattern.compiled.finditer(text):
        if not any(pattern.detector.analyze_string(match.group())):
            continue
        start, end = match.span()
        if match.re.groups and match.group(1) is not None and match.start(1) > start:
            start, end = match.span(1)
        rest = _REST_OF_TOKEN.match(text, end)
        if rest:
            end = start + len(text[start : rest.end()].rstrip("."))
        if start == 0 or not text[start - 1].isalnum():
            spans.append((start, end))
    return spans


@lru_cache(maxsize=1)
def _patterns() -> tuple[_Pattern, ...]:
    """Every shape of every detector, compiled by RE2 where it can, so that no line can make it slow."""
    from rca.redact.detectors import ACTIVE

    return tuple(_Pattern(detector, _linear(shape)) for detector in ACTIVE for shape in detector.denylist)


def _linear(shape: bounded.Pattern[str]) -> Any:
    """The shape in RE2; those with look-ahead, whose repetitions are all bounded, stay as they are."""
    flags = "(?i)" if shape.flags & bounded.IGNORECASE and not shape.pattern.startswith("(?i)") else ""
    options = re.Options()
    options.log_errors = False
    try:
        return re.compile(flags + shape.pattern.replace("0-9-_", "0-9_\\-"), options=options)
    except re.error:
        return shape


def _is_key_line(text: str) -> bool:
    """A line of a PEM file: nothing but 60 to 76 base64 characters of all three classes."""
    if not 60 <= len(text) <= 100 or not _KEY_LINE.fullmatch(text):
        return False
    return any(c.isupper() for c in text) and any(c.islower() for c in text) and any(c.isdigit() for c in text)


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged

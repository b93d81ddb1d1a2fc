"""Where the secrets are in a text."""

from __future__ import annotations

import re as bounded
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import re2 as re

from rca.redact.assignments import assigned
from rca.redact.disguise import SIGNS, plain
from rca.redact.keys import block_spans, line_span
from rca.redact.token_shapes import TRACES, token_spans

_NAME = re.compile(r"(?i)key|token|secret|passw|pwd|passphrase|credential|[_\-]pass")
"""Without one of these words nothing is assigned to a secret's name."""
_SHAPE = re.compile(
    r"(?i)aws.{0,60}[\"'=]|authorization|bearer|cookie|x-auth-|private-token|api-key|AccountKey|_authToken|"
    r"://[^/\s]*@|PRIVATE KEY|"
    r"[?&](?:x-amz-|x-goog-|sig|token|access_token|api_?key|key|auth|password|awsaccess|code|client_secret)|"
    r"A3T|A[BKS]IA|ACCA|eyJ|gh[pousr]_|gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent)-|gloas-|GR1348941|"
    r"\bsk-[\w-]{16}|[rs]k_live|SG\.|xox|hooks\.slack|/webhook|sq0csp|pypi-AgE|npm_[a-z0-9]{20}|"
    r"(?:wandb|twilio|mailchimp|mailgun).{0,60}[0-9a-f]{32}|\bcurl\b|sshpass|twine|docker login|redis-cli|mysql|"
    r"\blogin\s|:(?:543\d|6432|\*):|\"auth\"|\"username\""
)
"""Without one of these no detector finds anything; most lines hold none, and the detectors take 0.2 s to load."""
_ANY = re.compile(f"(?i:{_NAME.pattern[4:]})|(?i:{_SHAPE.pattern[4:]})|{TRACES}|{SIGNS}")
"""All of this in one search, as most lines hold nothing of it."""
_REST_OF_TOKEN = bounded.compile(r"[A-Za-z0-9_\-+=~%]*")
_CUT_FROM = 190
"""Characters of the shortest text that may have been cut."""
_REFERENCE = bounded.compile(r"[$<{*%]|x{3,}$|\.{3}")
"""Beginnings of what stands for a password in an address: `$PASSWORD`, `***`."""

Span = tuple[int, int]


class _Pattern(NamedTuple):
    detector: Any
    compiled: Any


def secret_spans(text: str) -> list[Span]:
    """Spans of secrets, in order, not overlapping."""
    line = line_span(text)
    found = [] if line is None else [line]
    if not _ANY.search(text) and (len(text) < _CUT_FROM or "://" not in text[-300:]):
        return found
    found += _spans(text)
    disguised = plain(text)
    if disguised is not None and disguised.text:
        found += [disguised.at(start, end) for start, end in _spans(disguised.text)]
    return merged(found)


def continued_spans(lines: Sequence[str]) -> Iterator[tuple[int, Span]]:
    """Secrets of commands that go on in the next line (`\\` at the end): number of the line and span in it."""
    first = 0
    while first < len(lines):
        last = first
        while last + 1 < len(lines) and lines[last].endswith("\\"):
            last += 1
        if last > first:
            yield from spread(lines[first : last + 1], "\n", first)
        first = last + 1


def spread(lines: Sequence[str], joint: str, first: int = 0) -> Iterator[tuple[int, Span]]:
    """Secrets in the joined lines: number of the line, from `first`, and span in it."""
    spans = secret_spans(joint.join(lines))
    begin = 0
    for number, line in enumerate(lines, first):
        for start, end in spans:
            here = max(0, start - begin), min(len(line.rstrip("\\")), end - begin)
            if here[0] < here[1]:
                yield number, here
        begin += len(line) + len(joint)


def _spans(text: str) -> list[Span]:
    found: list[Span] = []
    if _NAME.search(text):
        found += assigned(text)
    found += token_spans(text, cut=len(text) >= _CUT_FROM)
    if _SHAPE.search(text):
        found += block_spans(text)
        for pattern in _patterns():
            found += _of_pattern(pattern, text)
    return found


def _of_pattern(pattern: _Pattern, text: str) -> list[Span]:
    spans = []
    for match in pattern.compiled.finditer(text):
        if not any(pattern.detector.analyze_string(match.group())):
            continue
        start, end = match.span()
        whole = True
        if match.re.groups and match.group(1) is not None and match.start(1) > start:
            (start, end), whole = match.span(1), False
        rest = _REST_OF_TOKEN.match(text, end)
        if rest:
            end = start + len(text[start : rest.end()].rstrip("."))
        if _REFERENCE.match(text, start) or text.startswith("<secret>", end):
            continue
        if not whole or start == 0 or not text[start - 1].isalnum():
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


def merged(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, those that overlap joined."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif end > start:
            joined.append((start, end))
    return joined

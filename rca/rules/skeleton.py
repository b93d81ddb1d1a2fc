"""The two files of a new cause as text, its pattern and first case made from the line that gave it away."""

from __future__ import annotations

import re

from rca.errors import UsageError
from rca.rules.json_schemas import editor_line

UNFILLED = "FILL IN"
"""Stands wherever the author has to write; `rca rules check` and `test` refuse what still holds it."""

_LONGEST = 300
"""Characters of a line that its pattern covers; what gives a failure away stands early in its message."""
_VARIABLE = re.compile(
    r"(?P<url>[a-z][a-z0-9+]{1,9}://[^\s'\"<>)\],]+)"
    r"|(?P<path>(?:~|\.{1,2})?(?:/[\w.+@=%-]+){2,}/?|[A-Za-z]:\\[^\s'\"<>)\],]+)"
    r"|(?P<hex>0x[0-9a-fA-F]+)"
    r"|(?P<digest>\b(?=[a-f-]*[0-9])[0-9a-f]{8}[0-9a-f-]*\b)"
    r"|(?P<time>\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?Z?)?|\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?)"
    r"|(?P<pci>\b(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d\b)"
    r"|(?P<code>(?i:code|errno|error|status|http|signal|xid|exit(?:code)?)[ =:#]{0,3}\d+\b|[A-Z]+\d+)"
    r"|(?P<address>\d+(?:\.\d+){3}(?::\d+)?)"
    r"|(?P<power>\d+(?:\.\d+)?[eE][-+]?\d+)"
    r"|(?P<decimal>\d+(?:\.\d+)+)"
    r"|(?P<number>\d+)"
    r"|(?P<blank>\s{2,}|\t)"
    r"|(?P<strange>[^\x20-\x7e]+)",
    re.ASCII,  # as RE2 counts digits
)
_GENERAL = {
    "url": r"\S+",
    "path": r"\S+",
    "hex": r"0x[0-9a-fA-F]+",
    "digest": r"[0-9a-f-]+",
    "time": r"[\d:T.,Z -]+",
    "pci": r"[0-9a-fA-F:.]+",
    "address": r"[\d.:]+",
    "power": r"[\d.eE+-]+",
    "decimal": r"[\d.]+",
    "number": r"\d+",
    "blank": r"\s+",
    "strange": r".+",
}
"""What stands for a part that differs from run to run; codes (`Errno 28`, `E4711`, `A100`) tell what happened."""

_CAUSE = """\
{editor}
id: {cause}
title: {title}
sentence: FILL IN, say in one sentence, past tense, what went wrong.
summary: >-
  FILL IN, two to five sentences: what goes wrong, why, and how it looks from outside.
prior: 0.005            # share of failed jobs with this cause before anything is known
evidence:
  - id: message
    log: {pattern}
    weight: 5           # nats: 1 supports, 3 is strong, 5 decides
    required: true      # without it the cause is not considered
    says: FILL IN, what a reader learns from that line.
contradicts: []
explains:               # causes and signatures that are then only symptoms, such as the exception it ends in
  - code.user_exception
fixes:
  - action: FILL IN, what to do, imperative.
    why: FILL IN
    snippet: ""
decide:
  - FILL IN, the cheapest step that would settle it.
falsepositives: []
maturity: experimental
references: []
"""
_CASES = """\
{editor}
# `fires`: the cause must come first; `silent`: it must not.
# Items give log:, series:, config:, packages: or run: (a folder beside this file).
fires:
  - name: {name}
    log: |2
      {line}
silent:
  - name: FILL IN, looks alike, is something else
    why: FILL IN, what makes it look like this cause
    log: |
      FILL IN, paste a real log
"""


def skeleton(line: str, *, cause: str, message: str | None = None, up: int = 1) -> tuple[str, str]:
    """Return the texts of `<cause>.yaml` and `<cause>.cases.yaml` for a cause that `line` gives away.

    `message` is the line without what loggers and launchers put in front of it, where that is known: patterns are
    searched in it. `up` is how many folders above the files the schemas lie. Raises UsageError for a bad cause id or a
    line without a word to go by.
    """
    pattern = pattern_of(line if message is None else message)
    return _texts(cause, pattern=pattern, name="the line it was made from", line=_printable(line), up=up)


def blank(cause: str, *, up: int = 1) -> tuple[str, str]:
    """Return the same two texts with everything left to the author. Raises UsageError for a bad cause id."""
    pattern = f"{UNFILLED}, a pattern (RE2 syntax) of the line that gives it away"
    name, line = f"{UNFILLED}, the plain case", f"{UNFILLED}, paste a real log"
    return _texts(cause, pattern=pattern, name=name, line=line, up=up)


def pattern_of(message: str) -> str:
    """Return an RE2 pattern for a message and its like: numbers, paths, addresses and times may differ."""
    text = _printable(message).strip()
    if len(text) > _LONGEST:
        text = text[:_LONGEST].rsplit(" ", 1)[0]
    if not re.search(r"[A-Za-z]{3}", text):
        raise UsageError(f"{message!r} has no word that a pattern could go by; give the line that names the failure")
    parts, end = [], 0
    for found in _VARIABLE.finditer(text):
        parts += [_literal(text[end : found.start()]), _GENERAL.get(found.lastgroup or "", _literal(found[0]))]
        end = found.end()
    return "".join([*parts, _literal(text[end:])])


def _texts(cause: str, *, pattern: str, name: str, line: str, up: int) -> tuple[str, str]:
    if not re.fullmatch(r"[a-z0-9_]+\.[a-z0-9_]+", cause):
        raise UsageError(f"{cause!r} is not a cause id; write domain.name in lower case, e.g. acme.lease_expired")
    title = cause.split(".")[1].replace("_", " ").capitalize()
    quoted = "'" + pattern.replace("'", "''") + "'"
    return (
        _CAUSE.format(editor=editor_line("cause", up=up), cause=cause, title=title, pattern=quoted),
        _CASES.format(editor=editor_line("cases", up=up), name=name, line=line),
    )


def _literal(text: str) -> str:
    return re.sub(r"[\\.+*?()|\[\]{}^$]", r"\\\g<0>", text)


def _printable(line: str) -> str:
    """Return one line of what YAML can hold as it stands."""
    return "".join(char if char.isprintable() else " " for char in " ".join(line.split("\t"))).rstrip()

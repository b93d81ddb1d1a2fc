"""Objects as programs print them: `Namespace(lr=0.1, betas=(0.9, 0.999))`, `{'lr': 0.1}`, `a=1, b='x'`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

_LONGEST = 65_536
_NESTED = 400
"""Characters of a list or dict inside an object that are read; a longer one is kept as text."""
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)")
_ENUM = re.compile(r"<[\w.]+: '([^']*)'>|<[\w.]+: ([\d.]+)>")
_RUST = re.compile(r"Some\(\s*(.*?),?\s*\)", re.S)
_SOURCE = re.compile(r"(?!torch\.)[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\(.*)?|.*\b(?:for|lambda|if|self)\b.*")


class Unknown:
    """A value that only the program knows: an expression of source code."""


UNKNOWN = Unknown()


def call_end(text: str, start: int) -> int | None:
    """Return the position after the bracket that closes the one at `start`, or None where it stays open."""
    for depth, position in _walk(text, start):
        if depth == 0:
            return position + 1
    return None


def arguments(text: str) -> dict[str, Any]:
    """Return `name=value` or `name: value` pairs at the top level of a comma list; expressions are left out."""
    found: dict[str, Any] = {}
    for part in _parts(text[:_LONGEST]):
        name, value = _pair(part)
        if name is None:
            continue
        read = scalar(value)
        if not isinstance(read, Unknown):
            found[name] = read
    return found


def scalar(text: str) -> Any:
    """Return what a printed value stands for: bool, number, None, text, flat list or dict; `UNKNOWN` for code."""
    plain = text.strip().rstrip(",").strip()
    rust = _RUST.fullmatch(plain)
    if rust:
        plain = rust[1].strip()
    low = plain.lower()
    if low in {"none", "null", "nil", ""}:
        return None
    if low in {"true", "false"}:
        return low == "true"
    if _NUMBER.fullmatch(plain):
        number = float(plain.replace("_", ""))
        return int(number) if re.fullmatch(r"[-+]?\d{1,18}", plain) else number
    enum = _ENUM.fullmatch(plain)
    if enum:
        return enum[1] if enum[1] is not None else scalar(enum[2])
    if plain[0] in "'\"" and plain[-1] == plain[0] and len(plain) > 1:
        return plain[1:-1]
    if plain[0] in "([{" and len(plain) <= _NESTED and sum(plain.count(mark) for mark in "([{") <= 8:
        try:
            return ast.literal_eval(plain)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return plain
    return UNKNOWN if _SOURCE.fullmatch(plain) else plain[:1024]


def _pair(part: str) -> tuple[str | None, str]:
    text = part.strip()
    if text[:1] in {"'", '"'}:
        end = text.find(text[0], 1)
        rest = text[end + 1 :].lstrip()
        return (text[1:end], rest[1:]) if end > 0 and rest[:1] == ":" else (None, "")
    found = re.match(r"([A-Za-z_][\w.\-]{0,80})\s{0,4}[=:](?!=)", text)
    return (None, "") if found is None else (found[1], text[found.end() :])


def _parts(text: str) -> Iterator[str]:
    """Split at the commas that no bracket or quote holds."""
    start = 0
    for depth, position in _walk(text, 0):
        if depth == 0 and text[position] == ",":
            yield text[start:position]
            start = position + 1
        elif depth < 0:
            yield text[start:position]
            return
    yield text[start:]


def _walk(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield (depth after, position) for every bracket and comma outside quotes."""
    depth = 0
    quote = ""
    position = start
    while position < len(text):
        char = text[position]
        if quote:
            if char == "\\":
                position += 1
            elif char == quote:
                quote = ""
        elif char in "'\"" and not (position > start and text[position - 1].isalnum()):
            quote = char
        elif char in "([{":
            depth += 1
            yield depth, position
        elif char in ")]}":
            depth -= 1
            yield depth, position
        elif char == ",":
            yield depth, position
        position += 1

"""Private keys, in one text or over several lines, with or without the lines that begin and end them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import re2 as re

Span = tuple[int, int]

_NAMED = r"-----{}[A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----"
_BEGIN = re.compile(_NAMED.format("BEGIN"))
_END = re.compile(_NAMED.format("END"))
_BLOCK = re.compile(_NAMED.format("BEGIN") + r"(?s:.*?)(?:-----END[A-Z0-9 ]{0,40}-----|\z)")
_MATERIAL = re.compile(r"(?:^|[\s:|>\"',\]])([A-Za-z0-9+/]{16,}={0,2})(?:\\n)?[\"',]{0,2}\s*$")
_WRAPPED = re.compile(r"^\s*([A-Za-z0-9+/=\\]{16,})\s*$")
"""The last word of a line within a key; what a logger put in front of it stays."""
_HEADER = re.compile(r"(?i)(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash): .{0,80}$")
_WIDTHS = (64, 70, 76)
"""Characters in a line of PEM and PGP, of OpenSSH, and of MIME."""


def block_spans(text: str) -> Iterator[Span]:
    """Whole keys in one text; a key without an end reaches to the end of the text."""
    if "PRIVATE KEY" in text:
        for match in _BLOCK.finditer(text):
            yield match.span()


def line_span(text: str) -> Span | None:
    """A line of a key that stands alone: its last word has the width of such lines and characters of all classes."""
    if not min(_WIDTHS) <= len(text) <= 400 or len(text.rsplit(None, 1)[-1] if text.strip() else "") < min(_WIDTHS):
        return None
    match = _MATERIAL.search(text)
    if match is None or len(match.group(1)) not in _WIDTHS or not _is_mixed(match.group(1)):
        return None
    start, end = match.span(1)
    return start, end


def spans_over_lines(lines: Sequence[str]) -> dict[int, Span]:
    """Key material in lines that follow one another, by their index."""
    found: dict[int, Span] = {}
    begins = [n for n, line in enumerate(lines) if "PRIVATE KEY" in line and _BEGIN.search(line)]
    for begin in begins:
        if not _END.search(lines[begin]):
            _follow(lines, range(begin + 1, len(lines)), found)
    for end in (n for n, line in enumerate(lines) if "PRIVATE KEY" in line and _END.search(line)):
        if not _BEGIN.search(lines[end]):
            _follow(lines, range(end - 1, -1, -1), found)
    for known in [n for n, line in enumerate(lines) if n not in found and line_span(line) is not None]:
        found[known] = line_span(lines[known]) or (0, 0)
        _follow(lines, range(known + 1, len(lines)), found)
    return found


def _follow(lines: Sequence[str], order: range, found: dict[int, Span]) -> None:
    for index in order:
        line = lines[index]
        match = _MATERIAL.search(line[:1000]) or _WRAPPED.search(line[:1000])
        if match is not None and (len(match.group(1)) == len(line.strip()) or _is_mixed(match.group(1))):
            found.setdefault(index, match.span(1))
        elif line.strip() and not _HEADER.search(line[:400]):
            return


def _is_mixed(word: str) -> bool:
    return any(c.isupper() for c in word) and any(c.islower() for c in word) and any(c.isdigit() for c in word)

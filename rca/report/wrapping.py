"""Lines of text that fit into the columns of a terminal, where a Chinese character takes two."""

from __future__ import annotations

import re
import textwrap
import unicodedata

_WIDE = "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6"
_CLOSING = "、。，．：；！？）】》」』”’％"
_TOKEN = re.compile(rf"\s+|[^\s{_WIDE}]+[{_CLOSING}]*|[{_WIDE}][{_CLOSING}]*")
"""A word, or one wide character, with the punctuation that may not begin a line."""


def columns(text: str) -> int:
    """Columns that a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text
    )


def wrapped(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """Return lines of at most `width` columns, unless a word alone is longer; `first` and `rest` begin them."""
    if (first + text).isascii():
        return textwrap.wrap(
            text,
            width,
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        )
    lines: list[str] = []
    line, used, empty = first, columns(first), True
    for token in _TOKEN.findall(text):
        blank = token.isspace()
        size = 1 if blank else columns(token)
        if not empty and used + size > width and not blank:
            lines.append(line.rstrip())
            line, used, empty = rest, columns(rest), True
        if blank and empty:
            continue
        line += " " if blank else token
        used += size
        empty = False
    return [*lines, *([line.rstrip()] if not empty else [])]

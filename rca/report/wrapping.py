"""Lines of text that fit into the columns of a terminal, where a Chinese character takes two."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from rich.cells import cell_len, set_cell_size

_CLOSING = "、。，．：；！？）】》」』”’％…"
_OPENING = "（【《「『“‘"
_BLANKS = re.compile(r"(\s+)")


def columns(text: str) -> int:
    """Columns that a text takes."""
    return len(text) if text.isascii() else cell_len(text)


def cut(text: str, width: int) -> str:
    """The text, with an ellipsis in place of what does not fit into `width` columns."""
    return text if columns(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def padded(text: str, width: int) -> str:
    """The text with blanks up to `width` columns."""
    return text + " " * (width - columns(text))


def wrapped(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """Return `text` in lines that begin with `first` and `rest`, of at most `width` columns unless a word is longer.

    A line may end after every wide character, but not before a closing or after an opening mark.
    """
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
    for token in _tokens(text):
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


def _tokens(text: str) -> Iterator[str]:
    """Blanks, words, and wide characters each with the marks that may not part from them."""
    for part in _BLANKS.split(text):
        if part.isascii():
            yield from [part] if part else []
            continue
        token = ""
        for letter in part:
            joined = letter in _CLOSING or token[-1:] in _OPENING
            wide = cell_len(letter) == 2 or (token and cell_len(token[-1]) == 2)
            if token and wide and not joined:
                yield token
                token = ""
            token += letter
        yield token

"""Text as its reader means it: without colours and invisible characters, and with what is encoded in it decoded.

A secret that is split by such characters is found in the plain text; `at` leads back to the text as it stands.
"""

from __future__ import annotations

import re as bounded
from typing import NamedTuple

import re2 as re

_SIGNS = re.compile(
    r"[\x1b\x{ad}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{2064}\x{feff}]|%[0-9A-Fa-f]{2}|\\u00|&amp;|\\\r?\n"
)
_DISGUISED = bounded.compile(
    r"\x1b\[[0-9;:?]{0,32}[ -/]?[@-~]|\x1b\][^\x07\x1b]{0,128}(?:\x07|\x1b\\)|\x1b[@-_]|"
    r"[\xad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]|\\\r?\n[ \t]{0,80}|"
    r"%(?:25)?([2-7][0-9A-Fa-f])|\\u00([2-7][0-9A-Fa-f])|&(amp);"
)


class Plain(NamedTuple):
    """A plain text and where its characters stand in the original."""

    text: str
    starts: list[int]
    ends: list[int]
    """Offsets in the original of every character."""

    def at(self, start: int, end: int) -> tuple[int, int]:
        """Span in the original."""
        return self.starts[start], self.ends[end - 1]


def plain(text: str) -> Plain | None:
    """Return the plain text, or None where the text is plain already."""
    if not _SIGNS.search(text):
        return None
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    for match in _DISGUISED.finditer(text):
        start, end = match.span()
        meant = _meaning(match.group(), match.group(1) or match.group(2), match.group(3))
        parts += [text[at:start], meant]
        starts += [*range(at, start), *([start] * len(meant))]
        ends += [*range(at + 1, start + 1), *([end] * len(meant))]
        at = end
    parts.append(text[at:])
    starts += range(at, len(text))
    ends += range(at + 1, len(text) + 1)
    return Plain("".join(parts), starts, ends)


def _meaning(written: str, code: str | None, entity: str | None) -> str:
    """What an encoded character stands for; a continued line goes on with a space where it is indented."""
    if code:
        return chr(int(code, 16))
    if entity:
        return "&"
    return " " if written.startswith("\\") and written[-1] in " \t" else ""

"""Text as its reader means it: without colours and invisible characters, and with what is encoded in it decoded.

A secret that is split by such characters is found in the plain text; `at` leads back to the text as it stands.
"""

from __future__ import annotations

import re as bounded
from bisect import bisect_right
from typing import NamedTuple

import re2 as re

SIGNS = r"[\x1b\x{ad}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{2064}\x{feff}]|%[0-9A-Fa-f]{2}|\\u00|&amp;|\\\r?\n"
_SIGNS = re.compile(SIGNS)
_DISGUISED = bounded.compile(
    r"\x1b\[[0-9;:?]{0,32}[ -/]?[@-~]|\x1b\][^\x07\x1b]{0,128}(?:\x07|\x1b\\)|\x1b[@-_]|"
    r"[\xad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]|\\\r?\n[ \t]{0,80}|"
    r"%(?:25)?([2-7][0-9A-Fa-f])|\\u00([2-7][0-9A-Fa-f])|&(amp);"
)


class Plain(NamedTuple):
    """A plain text and where its pieces stand in the original."""

    text: str
    begins: list[int]
    """Offset of every piece in the plain text, rising."""
    places: list[tuple[int, int, bool]]
    """Span of every piece in the original, and whether it stands there letter by letter."""

    def at(self, start: int, end: int) -> tuple[int, int]:
        """Span in the original."""
        first, last = (bisect_right(self.begins, offset) - 1 for offset in (start, end - 1))
        begin, _, plain_first = self.places[first]
        upto, whole, plain_last = self.places[last]
        return (
            begin + (start - self.begins[first] if plain_first else 0),
            upto + end - self.begins[last] if plain_last else whole,
        )


def plain(text: str) -> Plain | None:
    """Return the plain text, or None where the text is plain already."""
    if not _SIGNS.search(text):
        return None
    parts: list[str] = []
    begins: list[int] = []
    places: list[tuple[int, int, bool]] = []
    length = at = 0
    for match in _DISGUISED.finditer(text):
        meant = _meaning(match.group(), match.group(1) or match.group(2), match.group(3))
        for piece, place in ((text[at : match.start()], (at, match.start(), True)), (meant, (*match.span(), False))):
            if piece:
                parts.append(piece)
                begins.append(length)
                places.append(place)
                length += len(piece)
        at = match.end()
    return Plain("".join([*parts, text[at:]]), [*begins, length], [*places, (at, len(text), True)])


def _meaning(written: str, code: str | None, entity: str | None) -> str:
    """What an encoded character stands for; a continued line goes on with a space where it is indented."""
    if code:
        return chr(int(code, 16))
    if entity:
        return "&"
    return " " if written.startswith("\\") and written[-1] in " \t" else ""

"""What varies from line to line - times, addresses, numbers, paths - replaced by its kind."""

from __future__ import annotations

import re

LONGEST = 512
"""Characters of a line that are looked at: it bounds the work on one line, and no message needs more to be known."""

_MASKS = {
    "time": (
        r"\b\d{4}[-/]\d{2}[-/]\d{2}(?:[T _-]\d{2}[:-]\d{2}[:-]\d{2}(?:[.,]\d{1,9})?(?:Z\b|[+-]\d{2}:?\d{2}\b)?)?"
        r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}\d{1,2}\b"
        r"|\b\d{1,3}:\d{2}(?::\d{2})?(?:[.,]\d{1,9})?\b"
    ),
    "ip": r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b",
    "url": r"\b[a-z]{2,8}://[^\s'\"<>)\]]{1,400}",
    "path": r"(?<![\w./])(?:~|\.{1,2})?(?:/[\w.@+=:%-]{1,255}){2,64}/?",
    "hex": (
        r"\b0x[0-9a-fA-F]{1,64}\b"
        r"|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
        r"|\b(?=[a-f]{0,63}[0-9])(?=[0-9]{0,63}[a-f])[0-9a-f]{7,64}\b"
    ),
    "bar": r"\|[ #=>.█▉▊▋▌▍▎▏-]{1,400}\|",
    "num": r"(?:(?<![\w)\]])[-+])?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?%?",
}
_ANY = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _MASKS.items()))


def masked(text: str) -> str:
    """Return a message, cut at `LONGEST`, with what varies replaced by its kind: `<time>`, `<path>`, `<num>`, ..."""
    return _ANY.sub(lambda found: f"<{found.lastgroup}>", text[:LONGEST])

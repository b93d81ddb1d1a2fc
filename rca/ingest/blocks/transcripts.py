"""Transcripts with times, as Whisper and its kin print and save them: how often one segment follows itself."""

from __future__ import annotations

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import add_system, claim
from rca.ingest.logs.document import Document

_CLOCK = r"(?:\d{1,3}:)?\d{1,2}:\d{2}[.,]\d{2,3}"
_STAMP = re2.compile(
    rf"\s*(?:\[?{_CLOCK} --> {_CLOCK}\]?|\[\d+\.\d+s? ?->? ?\d+\.\d+s?\])\s*(?:(?:align|position|line):\S+\s*)*(.*)"
)
_INDEX = re2.compile(r"\s*\d{1,6}\s*")
_MOST = 50_000
_FEWEST = 3


class TranscriptParser:
    """Adds one `transcript` with the number of segments and the longest row of equal ones, at the start of that row."""

    name = "transcript"
    triggers: tuple[str, ...] = (rf"^\s*\[?{_CLOCK} --> {_CLOCK}", r"^\s*\[\d+\.\d+s? ?->? ?\d+\.\d+s?\]")

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the segments from `line` on, printed with the text behind the time or saved as SRT or WebVTT."""
        segments: list[tuple[int, str]] = []
        end, waits = line, False
        for number in range(line, min(line + _MOST, len(document) + 1)):
            plain = document.raw(number).strip()
            found = _STAMP.fullmatch(plain)
            if found is not None:
                segments.append((number, found[1].strip()))
                waits = not found[1]
            elif plain and waits and segments:
                place, text = segments[-1]
                segments[-1] = (place, f"{text} {plain}".strip())
            elif plain and _INDEX.fullmatch(plain) is None:
                break
            else:
                waits = False
            end = number + 1
        if len(segments) < _FEWEST:
            return line
        start, length = longest_row([text for _place, text in segments])
        attrs = {"segments": len(segments), "looped": length}
        place = segments[start][0]
        add_system(out, document, place, name="transcript", kind="artifact", value=float(length), attrs=attrs)
        return claim(document, line, end)


def longest_row(texts: list[str]) -> tuple[int, int]:
    """Return start and length of the longest row of equal texts; case, blanks and marks at the end do not count."""
    best, start = (0, 1), 0
    plain = [" ".join(text.lower().split()).strip(" .,!?…") for text in texts]
    for index in range(1, len(plain) + 1):
        if index == len(plain) or plain[index] != plain[start] or not plain[index]:
            if index - start > best[1] and plain[start]:
                best = (start, index - start)
            start = index
    return best

"""Token ids and labels of an example that a trainer prints before it starts."""

from __future__ import annotations

import re

from rca.events import EventBuilder
from rca.ingest.blocks.lines import place_of
from rca.ingest.logs.document import Document
from rca.ingest.weights.token_alignment import IGNORE_INDEX, label_offset

_INPUTS = re.compile(
    r"['\"]?\binput_ids\b['\"]?\s{0,3}(?:[:=]\s{0,4}(?P<list>(?:\w{1,12}\()?\[.*)?)$|"
    r"['\"]?input_ids['\"]?: (?P<inner>\[.*)$"
)
_LABELS = re.compile(
    r"['\"]?\b(?:labels|label_ids|target_ids)\b['\"]?\s{0,3}[:=]\s{0,4}(?P<list>(?:\w{1,12}\()?\[.*)?$"
)
_OWN_INPUTS, _OWN_TARGETS = (
    re.compile(
        rf"(?:^|\s)(?:{words})(?:\[[\d:, -]{{1,24}}\])?\s{{0,3}}[:=]\s{{0,4}}(?P<list>(?:\w{{1,12}}\()?\[.*)$", re.I
    )
    for words in ("x|xb|inputs?", "y|yb|targets?")
)
"""The names of loops that compute the loss themselves, whose targets have to be moved already."""
_NUMBER = re.compile(r"-?\d{1,7}")
_AHEAD = 40
"""Lines after the inputs among which the labels may stand; decoded text stands between them."""
_CLOSE = 4
_LINES = 200
_CHARS = 65_536


class TokenDumpParser:
    """Adds `labels_offset` and `labels_ignored_share` where inputs and labels are printed one after the other.

    What loops of their own print as `x` and `y` gives `targets_offset`.
    """

    name = "token dump"
    triggers: tuple[str, ...] = (
        r"\binput_ids\b['\"]?\s{0,3}[:=]\s{0,4}(?:\w{0,12}\(?\[|$)",
        r"(?i)(?:x|xb|inputs?)(?:\[[\d:, -]{1,24}\])?\s{0,3}[:=]\s{0,4}(?:\w{1,12}\()?\[",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read both lists; the line stays open to others, as it may hold settings."""
        message = document.prefix(line).message[:_CHARS]
        head = _INPUTS.search(message)
        if head is None:
            return _own_targets(document, line, out, message=message)
        inputs, end = _numbers(document, line, head["list"] or head["inner"])
        if not inputs:
            return line
        for number in range(end, min(end + _AHEAD, len(document)) + 1):
            found = _LABELS.search(document.prefix(number).message[:_CHARS])
            if found is None:
                continue
            labels, _last = _numbers(document, number, found["list"])
            if not labels:
                continue
            told = {"labels_ignored_share": labels.count(IGNORE_INDEX) / len(labels)}
            offset = label_offset(inputs, labels)
            if offset is not None:
                told["labels_offset"] = float(offset)
            for name, value in told.items():
                out.add(kind="metric", name=name, **place_of(document, number), phase="data", value=value)
            return line
        return line


def _own_targets(document: Document, line: int, out: EventBuilder, *, message: str) -> int:
    """Compare what a loop calls inputs with the targets on the next lines; the lines stay open to others."""
    head = _OWN_INPUTS.search(message)
    inputs, end = _numbers(document, line, head["list"]) if head is not None else ([], line)
    for number in range(end + 1, min(end + _CLOSE, len(document)) + 1 if inputs else 0):
        found = _OWN_TARGETS.search(document.prefix(number).message[:_CHARS])
        if found is None:
            continue
        offset = label_offset(inputs, _numbers(document, number, found["list"])[0])
        if offset is not None:
            place = place_of(document, number)
            out.add(kind="metric", name="targets_offset", **place, phase="data", value=float(offset))
        return line
    return line


def _numbers(document: Document, line: int, start: str | None) -> tuple[list[int], int]:
    """Return the numbers of a list up to its end or to the dots that stand for the rest, and its last line."""
    text, last = start or "", line
    while "]" not in text and last - line < _LINES and len(text) < _CHARS and last < len(document):
        last += 1
        text += " " + document.prefix(last).message
    text = text.lstrip()
    if "[" not in text[:16]:
        return [], line
    return [int(item) for item in _NUMBER.findall(text.split("]", 1)[0].split("...", 1)[0])], last

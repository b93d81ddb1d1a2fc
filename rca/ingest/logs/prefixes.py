"""What loggers and launchers put in front of a message: ranks, times, levels, names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rca.ingest.logs.document import Prefix
from rca.ingest.logs.prefix_tokens import LABELS, LEVEL_GROUPS, RANK_GROUPS, STAMPS, token_at, token_pattern
from rca.ingest.logs.timestamps import Clock

ANSI = re.compile(r"\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Colours, cursor movements and titles of terminals."""

_LEVELS = {
    "trace": "debug",
    "debug": "debug",
    "verbose": "debug",
    "info": "info",
    "notice": "info",
    "success": "info",
    "warn": "warning",
    "warning": "warning",
    "error": "error",
    "critical": "fatal",
    "fatal": "fatal",
}
_GLOG = {"D": "debug", "V": "debug", "I": "info", "W": "warning", "E": "error", "F": "fatal", "C": "fatal"}
_WORKER = re.compile(r"(?:_TP|_DP|_PP|_EP|rank=|_rank)(\d{1,6})")
_INNER_RANK = re.compile(r"\[[^\]\n]{0,60}\b(?:Rank|RANK|rank)[ =:](\d{1,6})\]|^[Rr]ank[ =](\d{1,6})[: ]")
_INNER = 80
"""Characters of a message in which it may name its own rank."""
_HOSTS = {"named": "host", "iso": "jhost"}
_NO_LOGGER = ("Error", "Exception", "Warning", "Interrupt", "Exit", "Killed")
_PARTS = 14
_START, _STARTS, _ALIKE = 12, 64, 24
"""Characters that say which prefixes a line may have, how many such beginnings are remembered, and prefixes of each."""
_ZEROS = str.maketrans("123456789", "000000000")


class _Shape(NamedTuple):
    """The prefix of one line, of which only the time may differ on others."""

    head: str
    kind: str
    tail: str
    """What stands between the time and the message."""
    indent: int
    """Blanks at the end of the tail that belong to the message."""
    named: bool
    rank: int | None
    host: str | None
    level: str | None


class PrefixForm(NamedTuple):
    """What stands around the time in front of a message, where nothing but the time differs from line to line."""

    head: str
    kind: str
    """Kind of the token that holds the time; empty where there is no prefix."""
    tail: str
    rank: int | None


class PrefixParser:
    """Takes the prefixes of one source apart.

    `label` says what every line starts with, which single lines cannot show (see `label_of`). `first_local` is the
    global rank of local rank 0, for the `[default3]:` of torchrun.
    """

    def __init__(self, clock: Clock, *, label: str | None = None, first_local: int = 0) -> None:
        self._clock = clock
        self._label = LABELS[label] if label else None
        self._first_local = first_local
        self._shapes: dict[str, list[_Shape]] = {}
        """Shapes seen lately, by how their lines start, the last one first."""
        self._shape: _Shape | None = None
        """That of the line that was read last."""

    def parse(self, text: str, line: int) -> Prefix:
        """Return the message of one line without colours, and what stood in front of it."""
        start = text[:_START].translate(_ZEROS)
        known = self._shapes.get(start)
        if known is None:
            known = self._shapes[start] = []
            if len(self._shapes) > _STARTS:
                del self._shapes[next(iter(self._shapes))]
        return self._like_a_known(text, line, known) or self._parse(text, line, known)

    def time(self, text: str, line: int) -> int | None:
        """Return the time in front of the message of one line; sooner than `parse` where the line before is alike."""
        shape = self._shape
        if shape is not None and text.startswith(shape.head):
            found = token_pattern(shape.kind).match(text, len(shape.head))
            if found is not None and text.startswith(shape.tail[:1], found.end()):
                return self._resolved(shape.kind, found, line)
        return self.parse(text, line).time

    def form(self, text: str, prefix: Prefix) -> PrefixForm | None:
        """Return the form of the prefix of a line that was just parsed, if the next lines may have the same.

        None where the message itself could be taken for a part of the prefix or for a rank.
        """
        message = prefix.message
        if message == text and text[:1] == " " and self._label is None and "ank" not in text and "ANK" not in text:
            # Nothing that a prefix starts with is a blank.
            return PrefixForm(" ", "", "", prefix.rank)
        if not message.lstrip(" \t")[:1].isalpha() or "ank" in message[:_INNER] or "ANK" in message[:_INNER]:
            return None
        if message == text:
            return PrefixForm("", "", "", prefix.rank) if text[:1].isalpha() else None
        shape = self._shape
        if shape is None or prefix.time is None or not text.startswith(shape.head):
            return None
        found = token_pattern(shape.kind).match(text, len(shape.head))
        tail = shape.tail[: len(shape.tail) - shape.indent]
        if found is None or text[found.end() :] != tail + message:
            return None
        return PrefixForm(shape.head, shape.kind, tail, shape.rank)

    def times(self, form: PrefixForm, printed: Sequence[str], lines: Sequence[int]) -> list[int | None] | None:
        """Return the times of lines of one form, or None where one of them is no time."""
        pattern = token_pattern(form.kind)
        times: list[int | None] = []
        for text, line in zip(printed, lines, strict=True):
            found = pattern.match(text + form.tail)
            if found is None or found.end() != len(text):
                return None
            times.append(self._resolved(form.kind, found, line))
        return times

    def _resolved(self, kind: str, found: re.Match[str], line: int) -> int | None:
        stamp = STAMPS[kind](found)
        return None if stamp is None else self._clock.resolve(stamp, line)

    def _like_a_known(self, text: str, line: int, known: list[_Shape]) -> Prefix | None:
        """Read a line whose prefix differs from that of one before in nothing but the time."""
        head = kind = None
        found: re.Match[str] | None = None
        for index, shape in enumerate(known):
            if shape.head != head or shape.kind != kind:
                head, kind = shape.head, shape.kind
                found = token_pattern(kind).match(text, len(head)) if text.startswith(head) else None
            if found is None or not text.startswith(shape.tail, found.end()):
                continue
            end = found.end() + len(shape.tail)
            more = token_at(text, end, first=False)
            if more is not None and not (shape.named and more.lastgroup == "t_name"):
                continue
            if index:
                known.insert(0, known.pop(index))
            self._shape = shape
            time = self._resolved(shape.kind, found, line)
            message = text[end - shape.indent :]
            rank = _inner_rank(message) if shape.rank is None else shape.rank
            return Prefix(message=message, rank=rank, host=shape.host, time=time, level=shape.level)
        return None

    def _parse(self, text: str, line: int, known: list[_Shape]) -> Prefix:
        position = 0
        rank: int | None = None
        host: str | None = None
        time: int | None = None
        level: str | None = None
        stamped: tuple[int, int, str] | None = None
        if self._label is not None and (found := self._label.match(text)):
            groups = found.groupdict()
            rank, host, position = int(groups.get("label") or groups["noderank"]), groups.get("host"), found.end()
        if text.startswith(" [", position) and (found := token_at(text, position + 1, first=position == 0)):
            # Megatron-LM sets a blank in front of the time; in front of all else a blank is indentation.
            position += (found.lastgroup or "")[2:] in STAMPS
        named = blank = was_rank = False
        before = position
        for part in range(_PARTS):
            found = token_at(text, position, first=part == 0 and not text[:position].strip())
            if found is None or found.end() == position:
                break
            kind = (found.lastgroup or "")[2:]
            if kind == "name":
                if (level is None and time is None) or named or found["logger"].endswith(_NO_LOGGER):
                    break
                named = True
            blank = kind == "separator" and found[0].isspace()
            if blank:
                before = position + (0 if was_rank or text[position - 1 : position] in {"", " "} else 1)
            was_rank = kind in RANK_GROUPS
            position = found.end()
            if was_rank:
                if rank is None or kind == "rank":
                    rank = int(found[RANK_GROUPS[kind]]) + (self._first_local if kind == "local" else 0)
            elif kind == "process":
                inner = _WORKER.search(found[0])
                rank = rank if inner is None else int(inner[1])
            elif kind in LEVEL_GROUPS:
                level = level or _level(found[LEVEL_GROUPS[kind]])
            if kind in _HOSTS:
                host = host or found[_HOSTS[kind]]
            if kind in STAMPS and stamped is None:
                time = self._resolved(kind, found, line)
                stamped = (found.start(), found.end(), kind)
        # Blanks between two parts of a prefix belong to it; blanks in front of the message are its indentation.
        start = before if blank else position
        # A glog token states its level and its file beside the time, so the next line may differ in more.
        if stamped is not None and stamped[2] != "glog":
            first, last, kind = stamped
            self._shape = _Shape(text[:first], kind, text[last:position], position - start, named, rank, host, level)
            known.insert(0, self._shape)
            del known[_ALIKE:]
        message = text[start:] if position else text
        rank = _inner_rank(message) if rank is None else rank
        return Prefix(message=message, rank=rank, host=host, time=time, level=level)


def strip_colours(text: str) -> str:
    """Return the text without colours, cursor movements and other orders to a terminal."""
    return ANSI.sub("", text) if "\x1b" in text else text


def label_of(lines: Sequence[str]) -> str | None:
    """Return what nine in ten lines start with: `task` (`0: `), `node` (`node7: [5] `), or None."""
    filled = [line for line in lines if line.strip()]
    if len(filled) < 3:
        return None
    for name, pattern in LABELS.items():
        if sum(pattern.match(line) is not None for line in filled) >= 0.9 * len(filled):
            return name
    return None


def _inner_rank(message: str) -> int | None:
    found = _INNER_RANK.search(message, 0, _INNER) if "ank" in message[:_INNER] or "ANK" in message[:_INNER] else None
    return None if found is None else int(found[1] or found[2])


def _level(word: str) -> str | None:
    return _GLOG.get(word) if len(word) == 1 else _LEVELS.get(word.lower())

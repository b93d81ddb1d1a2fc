"""The lines of one process among the lines of others."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rca.ingest.logs.document import Document

_FOREIGN_LINES = 2000
"""Lines of other ranks that may stand between two lines of one block."""
_PIPE = re.compile(r"\s*[|+] ?")
GROUP_RULE = re.compile(r"\s*\+-[+-]*(?: \d+ -+)?$")
"""The line between two parts of an exception group."""


class RankStream:
    """The lines of one process among interleaved ones, from a line on."""

    def __init__(self, document: Document, line: int) -> None:
        self._document = document
        self._first = line
        self._tag = _tag(document, line)
        self._piped = _PIPE.match(document.prefix(line).message) is not None
        self._taken = [line]
        self._indent = 0
        self._ahead: list[tuple[int, str]] = []
        self._lines = self._walk(line + 1)

    def _walk(self, line: int) -> Iterator[tuple[int, str]]:
        skipped = 0
        for number in range(line, len(self._document) + 1):
            if number in self._document.claimed:
                continue
            if _tag(self._document, number) != self._tag:
                skipped += 1
                if skipped > _FOREIGN_LINES:
                    return
                continue
            skipped = 0
            yield number, self._document.prefix(number).message

    def indented(self, width: int) -> None:
        """Take a traceback that stands indented as if it began at the margin."""
        if width > self._indent:
            self._ahead = [(number, message[width:]) for number, message in self._ahead]
            self._indent = width

    def peek(self, ahead: int = 0) -> tuple[int, str] | None:
        """Return a coming line of the process, or None at the end."""
        while len(self._ahead) <= ahead:
            item = next(self._lines, None)
            if item is None:
                return None
            number, message = item
            if self._piped and not GROUP_RULE.match(message):
                bar = _PIPE.match(message)
                message = message[bar.end() :] if bar else message
            if self._indent and message[: self._indent].isspace():
                message = message[self._indent :]
            self._ahead.append((number, message))
        return self._ahead[ahead]

    @property
    def used(self) -> int:
        """Number of lines used up so far."""
        return len(self._taken)

    @property
    def last(self) -> int:
        """The line used up last."""
        return self._taken[-1]

    def take(self, count: int = 1) -> None:
        """Use up lines."""
        for number, _ in self._ahead[:count]:
            self._taken.append(number)
        del self._ahead[:count]

    def skip(self, count: int) -> None:
        """Pass over lines that are not of this block."""
        del self._ahead[:count]

    def prefixed(self, line: int) -> bool:
        """Whether a line carries a time or level of its own while the first line had none."""
        first, this = self._document.prefix(self._first), self._document.prefix(line)
        return first.time is None and first.level is None and (this.time is not None or this.level is not None)

    def silence(self, since: int) -> None:
        """Declare the lines taken after the first `since` ones source code and file names, not messages."""
        self._document.silent.update(self._taken[since:])

    def close(self) -> int:
        """Return the line after the block; lines of others in between stay open to other parsers."""
        last = self._taken[-1]
        if last - self._first + 1 == len(self._taken):
            return last + 1
        self._document.claimed.update(self._taken)
        return self._first + 1


def _tag(document: Document, line: int) -> tuple[int | None, str | None]:
    prefix = document.prefix(line)
    return prefix.rank, prefix.host

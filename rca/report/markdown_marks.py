"""Text in Markdown: prose, code and table rows in which nothing that a log said is markup."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from rca.report.measures import clean, one_line

_SPECIAL = re.compile(r"([\\`*_\[\]#|~$>])")
_MENTION = re.compile(r"@(?=\w)")


class Section(NamedTuple):
    """One part of the document; the highest `rank` is dropped first when the document is too long."""

    rank: int
    title: str
    text: str


def escaped(text: str, *, limit: int = 400) -> str:
    """One line of prose in which nothing is markup, a link, a reference or a mention."""
    safe = one_line(text, limit=limit).replace("&", "&amp;").replace("<", "&lt;")
    return _MENTION.sub("@\u2060", _SPECIAL.sub(r"\\\1", safe))


def code(text: str, *, limit: int = 200) -> str:
    """An inline code span whatever is in the text; in tables the bar must stay out of it."""
    flat = one_line(text, limit=limit).replace("|", "¦")
    fence = "`" * (max((len(run) for run in re.findall("`+", flat)), default=0) + 1)
    gap = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{gap}{flat}{gap}{fence}" if flat else ""


def fenced(text: str, language: str = "", *, lines: int = 30, width: int = 500) -> str:
    """A code block whose fence is longer than any in the text."""
    shown = [line[:width] for line in clean(text).splitlines()[:lines]]
    fence = "`" * max(3, max((len(run) for line in shown for run in re.findall("`+", line)), default=0) + 1)
    return "\n".join([fence + re.sub(r"[^\w+-]", "", language), *shown, fence])


def cells(texts: Iterable[str]) -> str:
    """One row of a table."""
    return "| " + " | ".join(texts) + " |"

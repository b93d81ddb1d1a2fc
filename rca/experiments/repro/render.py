"""From pieces of text to one program that is short, compiles, and says what it is."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rca
from rca.errors import ExperimentError

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
MAX_LINES, MAX_BYTES = 149, 25_000
WIDTH, LIMIT = 116, 120
"""Columns that are filled, and that no line of code exceeds."""
_BLANKS = re.compile(r"\n{4,}")


class Expression(str):
    """Python code in the place of a value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def rendered(template: str, context: Mapping[str, Any], *, title: str, parts: Sequence[tuple[str, str]]) -> str:
    """Return the program; what is told first in `parts` stays when there is no room for all of it.

    Raises ExperimentError when even so it would be longer than a reader likes.
    """
    needs = f"Written by rca {rca.__version__} for {versions()}."
    for told in range(len(parts), -1, -1):
        head = {"title": safe(title), "story": story(parts[:told]), "needs": needs}
        text: str = _environment().get_template(template).render({**context, **head})
        text = _BLANKS.sub("\n\n\n", text).strip("\n") + "\n"
        if text.count("\n") <= MAX_LINES and len(text.encode()) <= MAX_BYTES:
            compile(text, "<script>", "exec", dont_inherit=True)
            return text
    raise ExperimentError(f"a script for these arms would have more than {MAX_LINES} lines")


def literal(value: Any) -> str:
    """Return Python code for a value."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, str) and not isinstance(value, Expression):
        return f'"{safe(value)}"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(name)}: {literal(item)}" for name, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(literal, value)) + ("," if isinstance(value, tuple) and len(value) == 1 else "")
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    return repr(value)


def entries(values: Mapping[str, Any], *, indent: int) -> tuple[str, ...]:
    """Return the entries of a dictionary in lines, several a line."""
    lines = [""]
    for name, value in values.items():
        entry = f"{literal(name)}: {literal(value)},"
        if lines[-1] and indent + len(lines[-1]) + 1 + len(entry) > WIDTH:
            lines.append("")
        lines[-1] = f"{lines[-1]} {entry}".lstrip()
    return tuple(lines)


def rows(values: Mapping[str, Any], *, indent: int) -> tuple[str, ...]:
    """Return the entries as dictionaries of one line each."""
    return tuple("{" + line.removesuffix(",") + "}" for line in entries(values, indent=indent + 1))


def dictionary(start: str, values: Mapping[str, Any]) -> list[str]:
    """Return `start` and the dictionary as lines of the program."""
    line = f"{start}{literal(dict(values))}"
    if len(line) <= WIDTH:
        return [line]
    return [f"{start}{{", *(f"    {entry}" for entry in entries(values, indent=4)), "}  # fmt: skip"]


def safe(text: str) -> str:
    """Return text that can stand in a Python string or docstring: one line, no quotes that end it, no escapes."""
    kept = "".join(sign if sign.isprintable() else " " for sign in text)
    return " ".join(kept.replace("\\", "/").replace('"', "'").split())


def story(parts: Sequence[tuple[str, str]]) -> str:
    """Return labelled paragraphs for the docstring, the empty ones left out."""
    told = [
        textwrap.fill(f"{label}: {safe(text)}", WIDTH, subsequent_indent="    ", break_on_hyphens=False)
        for label, text in parts
        if text
    ]
    return "\n".join(told)


def shortened(text: str, limit: int) -> str:
    """Return the sentences of a text that fit."""
    if len(text) <= limit:
        return text
    cut = text[:limit].rfind(". ")
    return text[: cut + 1] if cut > 0 else text[: limit - 3].rstrip() + "..."


def versions() -> str:
    """Return the versions of what the programs need."""
    return ", ".join(f"{name} {_version(name)}" for name in ("torch", "transformers", "numpy"))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(  # what comes out is Python, not HTML
        loader=FileSystemLoader(TEMPLATES),
        autoescape=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )

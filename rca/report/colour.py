"""Whether a stream gets colour, and the few colours the terminal summary uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any, Literal

import click

ColourChoice = Literal["auto", "always", "never"]

STYLES: dict[str, dict[str, Any]] = {
    "error": {"fg": "red", "bold": True},
    "unknown": {"fg": "yellow", "bold": True},
    "ok": {"fg": "green", "bold": True},
    "strong": {"bold": True},
    "place": {"fg": "blue", "bold": True},
    "label": {"fg": "cyan", "bold": True},
    "quiet": {"dim": True},
}


def wants_colour(choice: ColourChoice, *, stream: IO[str], environ: Mapping[str, str]) -> bool:
    """`--color`, then NO_COLOR, FORCE_COLOR, TERM=dumb, then whether the stream is a terminal.

    NO_COLOR counts when it is not empty (no-color.org); FORCE_COLOR=0 means no.
    """
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return environ["FORCE_COLOR"] != "0"
    if environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def paint(text: str, style: str, *, on: bool) -> str:
    """`text` in a style of STYLES, or unchanged."""
    return click.style(text, **STYLES[style]) if on and text else text

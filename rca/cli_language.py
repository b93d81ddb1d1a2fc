"""The language of reports: its option, and what is rendered in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from rca.report.words import ENGLISH, languages, speaking

LANG = click.option(
    "--lang",
    type=click.Choice(languages()),
    default=ENGLISH,
    envvar="RCA_LANG",
    show_default=True,
    help="Language of reports; JSON stays English.",
)


@contextmanager
def spoken(language: str, rules: Sequence[Path] = ()) -> Iterator[None]:
    """What is rendered inside is in the language, the texts of all rules included."""
    if language == ENGLISH:
        yield
        return
    from rca.rules.languages import translations

    with speaking(language, translations(language, rules)):
        yield

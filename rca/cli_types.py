"""Types of arguments that the shell completes: runs, formats, ids of rules, faults."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from rca.ingest.places.remote import Root

_ID = re.compile(rb"^id: *['\"]?([\w.-]+)", re.MULTILINE)
"""Id of a cause or an experiment as it stands in its file: completion parses no YAML, which would take a second."""
_ITEM = re.compile(rb"^ *- id: *['\"]?([\w.-]+)", re.MULTILINE)
"""Id in a file of signatures."""
_FAULT = re.compile(rb"^- name: *['\"]?([\w.-]+)", re.MULTILINE)
_LAST = re.compile(r"^(?P<before>.*,)?(?P<last>[^,]*)$", re.DOTALL)


class RunPlace(click.ParamType["Root"]):
    """Where a run lies: a folder or an archive, on this machine or at a URL."""

    name = "place"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Root:
        """Return the place; UsageError for one that is not there."""
        if ctx is not None and ctx.resilient_parsing:  # the shell completes: nothing is read
            return Path(str(value))
        from rca.ingest.places.remote import run_place

        return run_place(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Let the shell complete folders and archives."""
        return [CompletionItem(incomplete, type="file")]


class Format(click.ParamType[str]):
    """A format of reports, built in or of an installed package."""

    name = "format"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Show the names of all formats."""
        from rca.report.registry import names

        return f"[{'|'.join(names())}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name of a format."""
        from rca.report.registry import BUILT_IN, names

        if value not in BUILT_IN and value not in names():
            self.fail(f"{value!r} is no format; there are {', '.join(names())}.", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete names of formats."""
        from rca.report.registry import names

        return _matching(names(), incomplete)


class Known(click.ParamType[str]):
    """A name, or with `listed` several with commas between, of which some are known."""

    def __init__(self, kind: str, *words: str, listed: bool = False) -> None:
        self.name = kind
        self.words = words
        """Names beside those that are known."""
        self.listed = listed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return what was given: what an id may be is known once the rules are loaded."""
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete the name, or the last of a list."""
        found = _LAST.match(incomplete) if self.listed else None
        before = (found["before"] or "") if found else ""
        names = [*self.words, *_known(self.name, ctx.params.get("rules") or ())]
        return _matching((before + name for name in names), incomplete)


def _matching(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _known(kind: str, folders: Iterable[Path]) -> list[str]:
    from rca.rules.folders import builtin_folder

    if kind == "fault":
        files = [*(Path(__file__).parent / "lab" / "catalogue").glob("*.yaml")]
        return sorted(name.decode() for file in files for name in _FAULT.findall(file.read_bytes()))
    parts = {"cause": ("causes",), "experiment": ("experiments",)}.get(kind, ("causes", "experiments", "signatures"))
    places = [*(builtin_folder() / part for part in parts), *map(Path, folders)]
    found: set[str] = set()
    for place in places:
        for file in place.rglob("*.yaml"):
            if not file.name.endswith(".cases.yaml") and ".cases" not in file.parent.suffix:
                found.update(name.decode() for name in _ids(file, kind))
    return sorted(found)


def _ids(file: Path, kind: str) -> list[bytes]:
    text = file.read_bytes()
    if b"\nsignatures:" in text or text.startswith(b"signatures:"):
        return _ITEM.findall(text) if kind == "rule" else []
    is_experiment = b"\nquestion:" in text
    return _ID.findall(text) if kind == "rule" or is_experiment == (kind == "experiment") else []

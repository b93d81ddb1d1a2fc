"""The formats by the name given to `--format`: those that come with `rca`, and those of installed packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from rca.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from rca.report.interface import Renderer

ENTRY_POINT = "rca.formats"
"""Group of entry points; each names a class whose instances are renderers (see interface.py)."""
BUILT_IN = {
    "html": "rca.report.html:HtmlReport",
    "json": "rca.report.json_report:JsonReport",
    "md": "rca.report.markdown:MarkdownReport",
    "jira": "rca.report.jira:JiraReport",
    "junit": "rca.report.junit:JunitReport",
    "text": "rca.report.text:TextReport",
}
"""Loaded when they are asked for: the page alone takes a tenth of a second."""


def names() -> tuple[str, ...]:
    """Names of all formats."""
    return (*BUILT_IN, *sorted(_installed()))


def renderer(name: str) -> Renderer:
    """Return the renderer of a format. Raises UsageError for one that does not exist or cannot be loaded."""
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        made: Renderer = getattr(import_module(module), attribute)()
        return made
    entry = _installed().get(name)
    if entry is None:
        raise UsageError(f"{name!r} is no format; there are {', '.join(names())}")
    try:
        found = entry.load()
        made = found() if isinstance(found, type) else found
    except (ImportError, AttributeError, TypeError) as error:
        raise UsageError(f"the format {name!r} ({entry.value}) cannot be loaded: {error}; mend its package") from error
    if not isinstance(getattr(made, "suffix", None), str) or not callable(getattr(made, "render", None)):
        raise UsageError(f"the format {name!r} ({entry.value}) has no `suffix` and `render`; mend its package")
    return made


class _Formats(Mapping[str, "Renderer"]):
    """All formats as a mapping."""

    def __getitem__(self, name: str) -> Renderer:
        if name not in names():
            raise KeyError(name)
        return renderer(name)

    def __iter__(self) -> Iterator[str]:
        return iter(names())

    def __len__(self) -> int:
        return len(names())


FORMATS: Mapping[str, Renderer] = _Formats()


@cache
def _installed() -> dict[str, EntryPoint]:
    """Formats of installed packages; one that comes with `rca` is not replaced."""
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT) if entry.name not in BUILT_IN}

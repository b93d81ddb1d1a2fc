"""Reads the lines around an evidence line again, when the report needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rca.ingest.interface import Place, Source
from rca.leads import ContextLine

RADIUS = 5
"""Lines before and after."""
WIDTH = 400
"""Characters shown of a context line."""
_WINDOW = 64 * 1024


def lines_around(
    sources: Sequence[Source], places: Sequence[tuple[str, int, int | None]]
) -> Mapping[tuple[str, int], tuple[ContextLine, ...]]:
    """Return up to five lines before and after each (source, line, byte offset); a place that is gone has none."""
    files = {source.path: source.file for source in sources}
    found: dict[tuple[str, int], tuple[ContextLine, ...]] = {}
    for source, line, offset in places:
        file = files.get(source)
        if file is not None and offset is not None:
            found[source, line] = _around(file, line, offset)
    return found


def _around(file: Place, line: int, offset: int) -> tuple[ContextLine, ...]:
    start = max(0, offset - _WINDOW)
    data = _bytes(file, start, offset - start + _WINDOW)
    before = data[: offset - start].split(b"\n")[:-1]
    after = data[offset - start :].split(b"\n")
    if start > 0:
        before = before[1:]
    above = before[-RADIUS:]
    below = after[: RADIUS + 1]
    first = line - len(above)
    return tuple(
        ContextLine(line=first + index, text=_shown(raw)) for index, raw in enumerate([*above, *below]) if raw or index
    )


def _bytes(file: Place, start: int, length: int) -> bytes:
    from rca.ingest.places.discover import open_source

    try:
        with open_source(file) as stream:
            stream.seek(start)
            return stream.read(length)
    except (OSError, EOFError, ValueError):
        return b""


def _shown(raw: bytes) -> str:
    from rca.ingest.logs.prefixes import strip_colours

    text = raw.decode("utf-8", errors="replace").rstrip("\r")
    return strip_colours(text.rsplit("\r", 1)[-1])[:WIDTH]

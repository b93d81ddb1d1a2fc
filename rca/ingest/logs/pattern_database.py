"""Hyperscan databases, compiled once and kept in the cache folder of the user."""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rca import cache
from rca.ingest.logs.pattern_tree import Group, parse, written

_PREPARED_BY = ("pattern_tree.py", "loosening.py", "scanner.py", "pattern_database.py")
"""Files that decide how patterns are prepared; when one changes, stored databases are left aside."""

_ITEM = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\x00-\x7f]", re.S)
"""What counts as one in a pattern: an escape, a class, a letter beyond ASCII."""
_BEYOND = re.compile(r"(?:[^\x00-\x7f]|\\.|.)-[^\x00-\x7f]|[^\x00-\x7f]")
_BYTES = r"(?:[\x80-\xff]+)"
_WORDS = 45
"""Alternatives in one place up to which Hyperscan looks for their letters; of more it follows all at every byte."""

Prepare = Callable[[Sequence[str]], tuple[list[str], list[int]]]


def compiled(written: Sequence[str], prepare: Prepare) -> tuple[Any, list[int]]:
    """Return the Hyperscan database of patterns and the indexes of those it cannot express.

    `prepare` gives the patterns as they are searched and the indexes of those to search; not called when stored.
    """
    preparation = [Path(__file__).with_name(name).read_bytes() for name in _PREPARED_BY]
    made_of = (written, preparation, version("hyperscan"), platform.machine(), platform.processor())
    key = hashlib.sha256(repr(made_of).encode())
    name = f"lines-{key.hexdigest()[:32]}.hsdb"
    stored = _load(name, len(written))
    if stored is not None:
        return stored
    loose, usable = prepare(written)
    patterns = [[bytewise(part) for part in parts(pattern)] for pattern in loose]
    accepted = list(usable)
    database = _database(patterns, accepted)
    if database is None:
        accepted = [index for index in accepted if _database(patterns, [index]) is not None]
        database = _database(patterns, accepted)
    others = sorted(set(usable) - set(accepted))
    if database is not None:
        _store(name, database, others)
    return database, others


def bytewise(pattern: str) -> str:
    """Return a pattern over bytes that finds all that `pattern` finds over letters, and perhaps more.

    A letter beyond ASCII is several bytes: it becomes a group, and in a class any run of bytes above 127.
    """
    return pattern if pattern.isascii() else _ITEM.sub(lambda found: _in_bytes(found[0]), pattern)


def parts(pattern: str) -> list[str]:
    """Return patterns that together find what `pattern` finds, none with very many alternatives in one place."""
    tree = parse(pattern)
    items = tree.alternatives[0]
    groups = [(len(item.alternatives), place) for place, item in enumerate(items) if isinstance(item, Group)]
    count, place = max(groups, default=(0, 0))
    if len(tree.alternatives) > 1 or count <= _WORDS:
        return [pattern]
    group = items[place]
    assert isinstance(group, Group)
    size = -(-count // -(-count // _WORDS))
    shares = (Group(group.opening, group.alternatives[start : start + size]) for start in range(0, count, size))
    return [written(Group("", ((*items[:place], share, *items[place + 1 :]),))) for share in shares]


def _in_bytes(item: str) -> str:
    if item.isascii():
        return item
    if item[0] != "[":
        return f"(?:{item})"
    bare = _BEYOND.sub("", item)
    if item[1] == "^":
        return bare if bare != "[^]" else "."
    return _BYTES if bare == "[]" else f"(?:{bare}|{_BYTES})"


def _database(patterns: Sequence[Sequence[str]], indexes: Sequence[int]) -> Any:
    import hyperscan

    if not indexes:
        return None
    searched = [(part.encode(), index) for index in indexes for part in patterns[index]]
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    try:
        database.compile(
            expressions=[part for part, _ in searched],
            ids=[index for _, index in searched],
            flags=hyperscan.HS_FLAG_MULTILINE,
        )
    except (hyperscan.error, hyperscan.HyperscanError):
        return None
    return database


def _load(name: str, count: int) -> tuple[Any, list[int]] | None:
    """Read a stored database: the indexes left to RE2, and Hyperscan's own serialisation."""
    import hyperscan

    stored = cache.read(name)
    if stored is None:
        return None
    header, _, payload = stored.partition(b"\n")
    try:
        others = [int(item) for item in header.split()]
        database = hyperscan.loadb(payload, mode=hyperscan.HS_MODE_BLOCK)
        database.scratch = hyperscan.Scratch(database)
    except (ValueError, TypeError, hyperscan.error, hyperscan.HyperscanError):
        return None
    return (database, others) if all(0 <= item < count for item in others) else None


def _store(name: str, database: Any, others: Sequence[int]) -> None:
    import hyperscan

    cache.write(name, " ".join(map(str, others)).encode() + b"\n" + hyperscan.dumpb(database))

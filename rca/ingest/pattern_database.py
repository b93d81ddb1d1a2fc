"""Hyperscan databases, compiled once and kept in the cache folder of the user."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

PREPARATION = 2
"""Number of the way in which patterns are prepared; a new one leaves stored databases aside."""

Prepare = Callable[[Sequence[str]], tuple[list[str], list[int]]]


def compiled(written: Sequence[str], prepare: Prepare) -> tuple[Any, list[int]]:
    """Return the Hyperscan database of patterns and the indexes of those it cannot express.

    `prepare` gives the patterns as they are searched and the indexes of those to search; not called when stored.
    """
    made_of = (written, PREPARATION, version("hyperscan"), platform.machine(), platform.processor())
    key = hashlib.sha256(repr(made_of).encode())
    cache = _cache_file(f"lines-{key.hexdigest()[:32]}.hsdb")
    stored = _load(cache, len(written))
    if stored is not None:
        return stored
    patterns, usable = prepare(written)
    # Bytes above 127 are searched as they stand, so a class or a repetition of such a letter needs RE2.
    accepted = [index for index in usable if patterns[index].isascii()]
    database = _database(patterns, accepted)
    if database is None:
        accepted = [index for index in accepted if _database(patterns, [index]) is not None]
        database = _database(patterns, accepted)
    others = sorted(set(usable) - set(accepted))
    if database is not None:
        _store(cache, database, others)
    return database, others


def _database(patterns: Sequence[str], indexes: Sequence[int]) -> Any:
    import hyperscan

    if not indexes:
        return None
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    try:
        database.compile(expressions=[patterns[index].encode() for index in indexes], ids=indexes, flags=0)
    except (hyperscan.error, hyperscan.HyperscanError):
        return None
    return database


def _cache_file(name: str) -> Path | None:
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return folder / "rca" / name


def _load(file: Path | None, count: int) -> tuple[Any, list[int]] | None:
    """Read a stored database: a checksum, the indexes left to RE2, and Hyperscan's own serialisation."""
    import hyperscan

    if file is None:
        return None
    try:
        stored = file.read_bytes()
        if hashlib.sha256(stored[32:]).digest() != stored[:32]:
            return None
        header, _, payload = stored[32:].partition(b"\n")
        others = [int(item) for item in header.split()]
        database = hyperscan.loadb(payload, mode=hyperscan.HS_MODE_BLOCK)
        database.scratch = hyperscan.Scratch(database)
    except (OSError, ValueError, TypeError, hyperscan.error, hyperscan.HyperscanError):
        return None
    return (database, others) if all(0 <= item < count for item in others) else None


def _store(file: Path | None, database: Any, others: Sequence[int]) -> None:
    """Keep a compiled database for the next run; a cache that cannot be written is no harm."""
    import hyperscan

    if file is None:
        return
    body = " ".join(map(str, others)).encode() + b"\n" + hyperscan.dumpb(database)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}.part")
        part.write_bytes(hashlib.sha256(body).digest() + body)
        part.replace(file)
    except OSError:
        return

"""Data samples in a run directory, as a sketch of hashes: enough to count what two files share, no text is kept."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rca.events import EventBuilder

SKETCH = 4096
"""Smallest hashes kept of one file; files with fewer samples are kept whole (bottom-k sketch)."""
_CONTENT = ("text", "content", "messages", "conversations", "prompt", "input", "question", "sentence", "document",
            "instruction", "source")  # fmt: skip
_IDENTITY = ("hash", "sha256", "sha1", "md5", "image_hash", "phash", "sample_id", "image", "image_path", "file", "path",
             "file_name", "filename", "id")  # fmt: skip
_SPLITS = (
    ("train", re.compile(r"(?:^|[/._-])(?:train(?:ing)?)(?=$|[/._-])", re.I)),
    ("validation", re.compile(r"(?:^|[/._-])(?:val(?:id(?:ation)?)?|dev|eval(?:uation)?)(?=$|[/._-])", re.I)),
    ("test", re.compile(r"(?:^|[/._-])(?:test|holdout)(?=$|[/._-])", re.I)),
)
_SPLIT_COLUMNS = ("split", "subset", "partition", "fold_name")
SAMPLE_COLUMNS = frozenset((*_CONTENT, *_IDENTITY, *_SPLIT_COLUMNS))
"""Columns that can tell one sample from another."""
_FEWEST = 4


def split_of(text: str) -> str | None:
    """Return train, validation or test where a path or label says one of them, or None."""
    found = [name for name, pattern in _SPLITS if pattern.search(text)]
    return found[0] if len(found) == 1 else None


def add_samples(out: EventBuilder, columns: Mapping[str, Sequence[Any]], *, path: str) -> None:
    """Add one `data.samples` artifact for each split of a table of samples, if it is one.

    A sample is known by its content where a column holds it, else by its hash, path or id. Only files whose path or
    whose rows name a split are looked at: others cannot be held against each other.
    """
    key = next((name for name in (*_CONTENT, *_IDENTITY) if _parts(columns, name)), None)
    splits = next((columns[name] for name in _SPLIT_COLUMNS if name in columns), None)
    named = split_of(path)
    if key is None or (splits is None and named is None):
        return
    parts = [columns[name] for name in _parts(columns, key)]
    groups: dict[str, list[str]] = {}
    for place in range(len(parts[0])):
        texts = [str(part[place]) for part in parts if part[place] is not None]
        split = named if splits is None else split_of(str(splits[place]))
        if texts and split is not None:
            groups.setdefault(split, []).append(_hashed(texts))
    for split, hashes in groups.items():
        if len(hashes) < _FEWEST:
            continue
        unique = sorted(set(hashes))
        out.add(
            kind="artifact",
            name="data.samples",
            line=1,
            value=float(len(hashes)),
            attrs={
                "split": split,
                "key": key,
                "count": len(hashes),
                "unique": len(unique),
                "sketch": unique[:SKETCH],
                "whole": len(unique) <= SKETCH,
            },
        )


def _parts(columns: Mapping[str, Sequence[Any]], key: str) -> list[str]:
    """Return the columns of one top-level key (`messages[0].content` belongs to `messages`)."""
    names = [name for name in columns if re.split(r"[.\[]", name, maxsplit=1)[0].lower() == key]
    return [name for name in names if any(isinstance(item, (str, int)) for item in columns[name][:_FEWEST])]


def _hashed(texts: Sequence[str]) -> str:
    plain = " ".join(" ".join(text.split()).lower() for text in texts)
    return hashlib.blake2b(plain.encode("utf-8", "replace"), digest_size=8).hexdigest()

"""Delta debugging: the smallest part of a set that still does it (Zeller and Hildebrandt, TSE 28(2), 2002)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def ddmin(items: Sequence[T], fails: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Return a part of `items` that fails and from which nothing can be left out without failing to fail.

    `fails(items)` must hold; that is not tried again. No part is tried twice. The order of the items is kept. One
    culprit among n is found in about 2 log2 n trials, the worst case is n^2 + 3 n.
    """
    known: dict[frozenset[T], bool] = {frozenset(items): True}

    def tried(part: tuple[T, ...]) -> bool:
        key = frozenset(part)
        if key not in known:
            known[key] = fails(part)
        return known[key]

    current, pieces = tuple(dict.fromkeys(items)), 2
    while len(current) >= 2:
        chunks = _chunks(current, pieces)
        rests = [tuple(item for item in current if item not in set(chunk)) for chunk in chunks]
        chunk = next((part for part in chunks if tried(part)), None)
        if chunk is not None:
            current, pieces = chunk, 2
            continue
        rest = next((part for part in rests if tried(part)), None)
        if rest is not None:
            current, pieces = rest, max(pieces - 1, 2)
        elif pieces < len(current):
            pieces = min(len(current), 2 * pieces)
        else:
            break
    return current


def _chunks(items: tuple[T, ...], pieces: int) -> list[tuple[T, ...]]:
    """Cut into that many parts whose sizes differ by one at most."""
    edges = [len(items) * at // pieces for at in range(pieces + 1)]
    return [items[start:end] for start, end in pairwise(edges) if start < end]

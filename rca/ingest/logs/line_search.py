"""Everything that is searched for in the lines of a log, compiled once for all sources of an analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import re2

from rca.ingest.logs.document import BlockParser
from rca.ingest.logs.scanner import Scanner, scanner_for
from rca.ingest.training_metrics import TRIGGERS
from rca.rules.schema import Signature

_KEPT = 4


class Trigger(NamedTuple):
    """One pattern of a block parser."""

    pattern: Any
    block: BlockParser
    order: int
    """Place of the block among all blocks."""
    late: bool
    """The block is asked only for lines that hold no metrics."""


@dataclass(frozen=True)
class LineSearch:
    """Patterns by their index: signatures first, then metrics, then the triggers of blocks."""

    scanner: Scanner
    signatures: Sequence[Signature]
    metrics: frozenset[int]
    triggers: Mapping[int, Trigger]

    @property
    def count(self) -> int:
        """Number of signatures: patterns below it are theirs."""
        return len(self.signatures)

    def pattern(self, index: int) -> Any:
        """Return the compiled pattern of a signature; few of hundreds are ever asked for, so not before."""
        return _pattern(self.signatures[index].pattern)


_known: dict[tuple[int, ...], tuple[LineSearch, tuple[object, ...]]] = {}
_latest: list[tuple[tuple[object, ...], LineSearch]] = []
"""The tuples of the last call and their search: for thousands of small logs the thousand identities cost most."""


def line_search(
    signatures: Sequence[Signature], blocks: Sequence[BlockParser], after_metrics: Sequence[BlockParser]
) -> LineSearch:
    """Return the compiled search; the same objects give the same search again."""
    if _latest and all(
        one is other for one, other in zip(_latest[0][0], (signatures, blocks, after_metrics), strict=True)
    ):
        return _latest[0][1]
    parts = (*signatures, *blocks, *after_metrics)
    key = tuple(id(part) for part in parts)
    found = _known.get(key)
    if found is None:
        while len(_known) >= _KEPT:
            _known.pop(next(iter(_known)))
        # The parts are kept with it, so that their identities stay taken.
        found = _known[key] = (_compiled(signatures, blocks, after_metrics), parts)
    if all(isinstance(item, tuple) for item in (signatures, blocks, after_metrics)):
        _latest[:] = [((signatures, blocks, after_metrics), found[0])]
    return found[0]


def _compiled(
    signatures: Sequence[Signature], blocks: Sequence[BlockParser], after_metrics: Sequence[BlockParser]
) -> LineSearch:
    patterns: list[str] = [signature.pattern for signature in signatures]
    metrics = frozenset(range(len(patterns), len(patterns) + len(TRIGGERS)))
    patterns += TRIGGERS
    triggers: dict[int, Trigger] = {}
    for order, block in enumerate((*blocks, *after_metrics)):
        for pattern in block.triggers:
            triggers[len(patterns)] = Trigger(re2.compile(pattern), block, order, order >= len(blocks))
            patterns.append(pattern)
    return LineSearch(
        scanner=scanner_for(patterns),
        signatures=tuple(signatures),
        metrics=metrics,
        triggers=triggers,
    )


@lru_cache(maxsize=4096)
def _pattern(text: str) -> Any:
    return re2.compile(text)

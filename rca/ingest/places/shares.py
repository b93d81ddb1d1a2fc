"""What one source of many may keep, so that the event table stays small however many ranks a run has.

In a job of thousands of ranks nearly all of them say the same: the same notices at the start, the same metrics a step,
the same lost connections at the end. The first and the last ranks keep everything, and so does every source that is
not one of many alike; each of the others keeps what is its own: the first and the last of its repeated messages, and
its metrics thinned out. Nothing is dropped of runs with fewer sources.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rca.ingest.interface import Ingested, Source

FIRST_RANKS, LAST_RANKS = 56, 8
"""Ranks that keep everything; jobs up to their sum are not touched. Whoever logs for all is the first or the last."""
ALIKE = 256
"""Files of one folder without a rank that keep everything."""
REPEATS = 8
"""Events kept of one message of one rank in the other sources: the first ones and the last."""
POINTS, MOST_POINTS, FEWEST_POINTS = 100_000, 256, 16
"""Points kept of one metric there, spread evenly: of all these sources together, and the most and the fewest of one.
Curves are drawn with no more, and a median over 16 steps tells a slow rank."""
ODD_POINTS = 32
"""Points kept of it that are not finite, from the first on, whatever else is kept."""
_FEW = 32
"""A table of so few rows is not looked at."""
_METRIC, _REPEATED = "metric", frozenset({"log", "exception", "process", "system"})


def with_shares(sources: Sequence[Source]) -> list[Source]:
    """Return the sources with those marked that are one of many alike."""
    ranks = sorted({source.rank for source in sources if source.rank is not None})
    whole = {*ranks[:FIRST_RANKS], *ranks[-LAST_RANKS:]}
    seen: dict[str, int] = {}
    alike = []
    for index, source in enumerate(sources):
        if source.rank is not None:
            many = source.rank not in whole
        else:
            folder = source.path.rpartition("/")[0]
            seen[folder] = seen.get(folder, 0) + 1
            many = seen[folder] > ALIKE
        if many:
            alike.append(index)
    shared = list(sources)
    for index in alike:
        shared[index] = replace(sources[index], one_of_many=len(alike))
    return shared


def reduced(ingested: Ingested, *, one_of: int) -> Ingested:
    """Return what a source that is one of so many keeps; the last of a repeated message holds the count of all."""
    table = ingested.events
    if table.num_rows <= _FEW:
        return ingested
    # Parts may hold one dictionary a chunk, so codes are only comparable after decoding.
    kinds, names = (table[name].cast(pa.string()).to_numpy(zero_copy_only=False) for name in ("kind", "name"))
    ranks = table["rank"].fill_null(-1).to_numpy()
    values = table["value"].to_numpy(zero_copy_only=False)
    groups: dict[tuple[str, str, int], list[int]] = {}
    for index, key in enumerate(zip(kinds, names, ranks, strict=True)):
        groups.setdefault(key, []).append(index)
    keep = np.ones(table.num_rows, dtype=bool)
    counted: dict[int, int] = {}
    points = min(max(POINTS // one_of, FEWEST_POINTS), MOST_POINTS)
    for (kind, _, _), found in groups.items():
        rows = np.asarray(found)
        if kind == _METRIC and len(rows) > points:
            keep[rows] = False
            keep[_spread(rows, values, points)] = True
        elif kind in _REPEATED and len(rows) > REPEATS:
            keep[rows[REPEATS - 1 : -1]] = False
            counted[found[-1]] = len(rows)
    dropped = int(np.count_nonzero(~keep))
    if not dropped:
        return ingested
    told = f"{dropped:,} events like others of this rank, one of many, were counted or thinned out, not kept."
    kept = _counted(table, counted).filter(pa.array(keep))
    return replace(ingested, events=kept, warnings=(*ingested.warnings, told))


def _spread(rows: npt.NDArray[np.int64], values: npt.NDArray[np.float64], points: int) -> npt.NDArray[np.int64]:
    """Choose points over the whole range, the first and the last among them, and the first that are not finite."""
    even = rows[np.linspace(0, len(rows) - 1, points).round().astype(np.int64)]
    odd = rows[~np.isfinite(values[rows])][:ODD_POINTS]
    return np.unique(np.concatenate([even, odd]))


def _counted(table: pa.Table, counts: dict[int, int]) -> pa.Table:
    """Write how often a message was said into the last of its events, as the reader of logs does for its own cuts."""
    if not counts:
        return table
    attrs = table["attrs"].to_pylist()
    for row, count in counts.items():
        known = json.loads(attrs[row]) if attrs[row] else {}
        attrs[row] = json.dumps({"count": count, **known}, ensure_ascii=False, sort_keys=True)
    return table.set_column(table.schema.get_field_index("attrs"), "attrs", pa.array(attrs, type=pa.string()))

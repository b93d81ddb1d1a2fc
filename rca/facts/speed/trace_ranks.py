"""Which rank the others wait for, from the traces of several ranks of one job.

The same collective is found in every trace by its step, kernel, group and place in the order. It ends on all ranks at
about the same moment, so the rank on which it lasts shortest came last: the shortest duration is the transfer, what
others have beyond it is their wait (torch-tb-profiler's and TraceLens' definition). That needs no common clock; how far
the clocks of hosts differ is told by the ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.memo import once_per_table

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Series = tuple[Floats, Floats, int]

CATALOGUE: Mapping[str, str] = {
    "trace.matched_collectives": "collective calls that were found again in the traces of other ranks",
    "trace.wait_of_collectives": "share of the collectives' time in which ranks wait for the last one (median rank)",
    "trace.straggler": "rank that arrives last at the collectives: the one that waits less than half as long as others",
    "trace.straggler_lag_us": "how much later than the first rank that one arrives (median of its last arrivals, us)",
    "trace.straggler_last_share": "share of the matched collectives at which that rank arrives last",
    "trace.clock_skew_us": "largest difference between the clocks of two ranks, by the ends of their collectives (us)",
}

CALL = "collective.call"
MIN_RANKS = 3
"""With two ranks one of them always waits less."""
MIN_CALLS = 5
LESS_THAN_OTHERS = 0.5
"""As for waits that are logged (ranks.LESS_THAN_OTHERS)."""


class Waits(NamedTuple):
    """How long each rank waited in the collectives that were matched."""

    rank: tuple[int, ...]
    wait: Floats
    """Microseconds, summed over the calls."""
    lasted: Floats
    """Microseconds of the same calls, waits counted."""
    last: npt.NDArray[np.int64]
    """Calls at which the rank came last."""
    lag: Floats
    """Median lead of the first rank over this one where it came last, in microseconds; NaN where it never did."""
    clock: Floats
    """Median difference of the ends of calls to the median of all ranks, in microseconds."""
    calls: int
    steps: int
    event_id: tuple[int, ...]
    """One call of each rank."""


@once_per_table
def waits(events: EventTable) -> Waits | None:
    """Match the collectives of all traced ranks; None where fewer than two ranks have any in common."""
    found = _calls(events)
    found = {
        key: rows for key, rows in found.items() if len(rows) > 1 and len({len(row[1]) for row in rows.values()}) == 1
    }
    matched = list(found.values())
    ranks = sorted({rank for rows in matched for rank in rows})
    if len(ranks) < 2:
        return None
    place = {rank: index for index, rank in enumerate(ranks)}
    wait, lasted = np.zeros(len(ranks)), np.zeros(len(ranks))
    last = np.zeros(len(ranks), np.int64)
    lags: list[list[float]] = [[] for _ in ranks]
    ends: list[list[float]] = [[] for _ in ranks]
    for rows in matched:
        index = np.array([place[rank] for rank in rows])
        duration = np.array([row[1] for row in rows.values()])
        end = np.array([row[0] for row in rows.values()]) + duration
        shortest, longest = duration.min(axis=0), duration.max(axis=0)
        wait[index] += (duration - shortest).sum(axis=1)
        lasted[index] += duration.sum(axis=1)
        came = index[duration.argmin(axis=0)]
        last += np.bincount(came, minlength=len(ranks))
        for rank, lag in zip(came.tolist(), (longest - shortest).tolist(), strict=True):
            lags[rank].append(lag)
        for row, offset in zip(index.tolist(), end - np.median(end, axis=0), strict=True):
            ends[row] += offset.tolist()
    ids = {rank: row[2] for rows in matched for rank, row in rows.items()}
    return Waits(
        tuple(ranks),
        wait,
        lasted,
        last,
        np.array([float(np.median(item)) if item else np.nan for item in lags]),
        np.array([float(np.median(item)) for item in ends]),
        int(last.sum()),
        len({step for _, step, _ in found}),
        tuple(ids[rank] for rank in ranks),
    )


def _calls(events: EventTable) -> dict[tuple[str, int | None, str], dict[int, Series]]:
    """Return (group, step, kernel) -> rank -> starts and durations in order, and the first event."""
    table = events.table
    mask = pc.and_(pc.equal(table["name"].cast(pa.string()), CALL), pc.is_valid(table["rank"]))
    rows = table.filter(mask).select(["source", "rank", "step", "text", "attrs", "value", "duration_us", "event_id"])
    if not rows.num_rows:
        return {}
    rows = rows.sort_by([("rank", "ascending"), ("value", "ascending")])
    chosen = _one_source(rows)
    found: dict[tuple[str, int | None, str], dict[int, list[tuple[float, float, int]]]] = {}
    columns = [rows[name].to_pylist() for name in ("rank", "step", "text", "attrs", "value", "duration_us", "event_id")]
    sources = rows["source"].cast(pa.string()).to_pylist()
    for source, rank, step, text, attrs, start, duration, event_id in zip(sources, *columns, strict=True):
        if chosen[rank] == source and start is not None and duration is not None:
            found.setdefault((attrs or "", step, text or ""), {}).setdefault(rank, []).append(
                (start, duration, event_id)
            )
    return {
        key: {
            rank: (np.array([item[0] for item in items]), np.array([item[1] for item in items]), items[0][2])
            for rank, items in ranks.items()
        }
        for key, ranks in found.items()
    }


def _one_source(rows: pa.Table) -> dict[int, str]:
    """Choose one trace of each rank, the one with the most calls, so that none is counted twice."""
    counted = rows.group_by(["rank", "source"]).aggregate([("event_id", "count")]).to_pylist()
    chosen: dict[int, tuple[int, str]] = {}
    for row in sorted(counted, key=lambda item: str(item["source"])):
        if row["event_id_count"] > chosen.get(row["rank"], (0, ""))[0]:
            chosen[row["rank"]] = row["event_id_count"], row["source"]
    return {rank: source for rank, (_, source) in chosen.items()}


def arrivals(events: EventTable) -> Iterator[Fact]:
    """Which rank arrives last at the collectives, and what do the others lose by it?"""
    found = waits(events)
    if found is None or found.calls < MIN_CALLS:
        return
    says = f"{found.calls} collectives were found in the traces of {len(found.rank)} ranks."
    yield from emit("trace.matched_collectives", found.calls, says, events=found.event_id)
    skew = float(np.ptp(found.clock))
    says = f"The same collectives end up to {number(skew)} us apart by the clocks of the ranks."
    yield from emit("trace.clock_skew_us", skew, says, unit="us", events=found.event_id)
    share = float(np.median(found.wait / np.maximum(found.lasted, 1e-9)))
    says = f"{percent(share)} of the time in collectives is waiting for the rank that comes last."
    yield from emit("trace.wait_of_collectives", share, says, events=found.event_id)
    if len(found.rank) < MIN_RANKS:
        return
    late = int(np.argmin(found.wait))
    others = float(np.median(np.delete(found.wait, late)))
    if found.wait[late] >= LESS_THAN_OTHERS * others:
        return
    rank, ids = found.rank[late], [found.event_id[late]]
    says = (
        f"Rank {rank} waits {number(found.wait[late] / 1e3)} ms in {found.calls} collectives, "
        f"the others {number(others / 1e3)} ms."
    )
    yield from emit("trace.straggler", rank, says, events=ids)
    says = f"Where rank {rank} comes last, it comes {number(found.lag[late])} us after the first (median)."
    yield from emit("trace.straggler_lag_us", float(found.lag[late]), says, unit="us", events=ids)
    share = float(found.last[late] / found.calls)
    says = f"Rank {rank} comes last at {percent(share)} of the collectives."
    yield from emit("trace.straggler_last_share", share, says, events=ids)


FACTS: tuple[FactFunction, ...] = (arrivals,)

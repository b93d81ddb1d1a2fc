"""Which rank is slower than the others, and which one the others wait for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.memo import once_per_table
from rca.facts.speed.trace_ranks import waits
from rca.metric_series import MetricSeries

CATALOGUE: Mapping[str, str] = {
    "ranks.slowest": "rank that works longest a step, waiting left out where it is logged",
    "ranks.slowest_ratio": "work time of that rank over the median of the other ranks",
    "ranks.slowest_by": "what that comparison rests on: work, step_time without waits, data_time, step_time, or the "
    "profiled step without waits",
    "ranks.wait_outlier": "rank that waits for less than half as long as the others, who wait for it",
    "ranks.wait_share": "share of the step that the other ranks wait (median over ranks)",
    "ranks.wait_ratio": "shortest wait of a rank over the median wait of the others",
}

LESS_THAN_OTHERS = 0.5
"""A rank that waits half as long as the rest arrives last at most collectives. In a balanced job waits differ by a
quarter (8 H100 ranks of a public trace: 22 to 27 %, the straggler 9 %)."""
MIN_RANKS_FOR_OUTLIER = 3
"""With two ranks the wait of one says nothing about whose fault it is."""
MIN_POINTS = 3
_TABLE = "table."
"""What tables with a row a rank say, each figure a mean over many steps."""

_WORK = re.compile(r"(?:^|[/._ -])(?:fwd|bwd|forward|backward|comput(?:e|ation|ing)|fprop|bprop)(?:$|[/._ -])")
WAIT = re.compile(
    r"(?:wait|all_?reduce|all_?gather|reduce_?scatter|barrier|nccl|(?:^|[/._ -])(?:comm|sync)(?:$|[/._ -]))"
)
_NO_TIME = re.compile(
    r"loss|norm|acc|count|bytes|util|memory|bandwidth|(?:^|[/._ -])(?:bus|alg)?bw(?:$|[/._ -])|share|ratio|"
    r"percent|%|flops"
)
_DATA = re.compile(r"(?:^|[/._ -])(?:data|load|loader)")


class PerRank(NamedTuple):
    """Median of one quantity for every rank that logged it."""

    values: Mapping[int, float]
    """Seconds a step (or another unit that is the same for all ranks)."""
    events: Mapping[int, int]
    """One event of each rank."""


def _medians(series: Sequence[MetricSeries], *, means: bool = False) -> PerRank:
    """Return the median of each rank's points; a trace or a table has few, all of them after warm-up or means."""
    values: dict[int, float] = {}
    events: dict[int, int] = {}
    for item in sorted(series, key=len):
        # The first point holds start-up; a rank with several sources is told by its longest.
        good = np.isfinite(item.value) & (np.arange(len(item)) >= (0 if means else 1))
        if item.rank is not None and np.count_nonzero(good) >= (1 if means else MIN_POINTS):
            factor = 1e-3 if item.unit == "ms" else 1e-6 if item.unit == "us" else 1.0
            values[item.rank] = float(np.median(item.value[good])) * factor
            events[item.rank] = int(item.event_id[-1])
    return PerRank(values, events)


def _summed(parts: Sequence[PerRank]) -> PerRank:
    """Add quantities over the ranks that have all of them."""
    if not parts:
        return PerRank({}, {})
    common = set.intersection(*(set(part.values) for part in parts))
    return PerRank(
        {rank: sum(part.values[rank] for part in parts) for rank in sorted(common)},
        {rank: parts[0].events[rank] for rank in sorted(common)},
    )


class _Logged(NamedTuple):
    work: PerRank
    wait: PerRank
    data: PerRank
    step: PerRank


@once_per_table
def _logged(events: EventTable) -> _Logged:
    work: list[PerRank] = []
    wait: list[PerRank] = []
    for name in events.metric_names:
        if name.startswith("trace.") or _NO_TIME.search(name) or _DATA.search(name):
            continue
        part = _medians(events.all_metrics(name), means=name.startswith(_TABLE))
        if len(part.values) > 1 and name.removeprefix(_TABLE) != "step_time":
            (wait if WAIT.search(name) else work if _WORK.search(name) else []).append(part)
    return _Logged(
        _summed(work),
        _summed(wait),
        _of_ranks(events, "data_time"),
        _of_ranks(events, "step_time"),
    )


def _of_ranks(events: EventTable, name: str) -> PerRank:
    """Return what the ranks logged each, else what a table says of them all."""
    logged = _medians(events.all_metrics(name))
    return logged if len(logged.values) > 1 else _medians(events.all_metrics(_TABLE + name), means=True)


def slowest(events: EventTable) -> Iterator[Fact]:
    """Compare the ranks by the time they work themselves."""
    logged = _logged(events)
    compared = _own_time(logged) or _traced_time(events)
    if compared is None:
        return
    by, own = compared
    rank = max(own.values, key=lambda item: own.values[item])
    others = float(np.median([value for other, value in own.values.items() if other != rank]))
    if others <= 0:
        return
    ratio = own.values[rank] / others
    says = (
        f"Rank {rank} takes {number(own.values[rank])} s a step ({by}), "
        f"the others {number(others)} s in the median: {number(ratio)} times as long."
    )
    yield from emit("ranks.slowest", rank, says, events=[own.events[rank]])
    yield from emit("ranks.slowest_ratio", ratio, says, events=[own.events[rank]])
    yield from emit("ranks.slowest_by", by, says, events=[own.events[rank]])


def _own_time(logged: _Logged) -> tuple[str, PerRank] | None:
    """Return the best comparison of own work that at least two ranks allow.

    In synchronous training the whole step lasts equally long on all ranks, so it is the last choice.
    """
    if len(logged.work.values) > 1:
        return "work", _summed([logged.work, logged.data]) if len(logged.data.values) > 1 else logged.work
    if len(logged.step.values) > 1 and len(logged.wait.values) > 1:
        minus = PerRank({rank: -value for rank, value in logged.wait.values.items()}, logged.wait.events)
        return "step_time without waits", _summed([logged.step, minus])
    if len(logged.step.values) > 1:
        return "step_time", logged.step
    if len(logged.data.values) > 1:
        return "data_time", logged.data
    return None


def _traced_waits(events: EventTable) -> tuple[PerRank, PerRank]:
    """Return the waits and the steps of profiled ranks (s); waits in matched collectives, else those that show."""
    step = _medians(events.all_metrics("trace.step_us"), means=True)
    matched = waits(events)
    if matched is not None and len(matched.rank) >= MIN_RANKS_FOR_OUTLIER:
        mean = (matched.wait * 1e-6 / matched.steps).tolist()
        ids = dict(zip(matched.rank, matched.event_id, strict=True))
        return PerRank(dict(zip(matched.rank, mean, strict=True)), ids), step
    return _medians(events.all_metrics("trace.exposed_collective_us"), means=True), step


def _traced_time(events: EventTable) -> tuple[str, PerRank] | None:
    """Return how long the profiled ranks work a step themselves, where their collectives were matched."""
    matched = waits(events)
    if matched is None or len(matched.rank) < MIN_RANKS_FOR_OUTLIER:
        return None
    wait, step = _traced_waits(events)
    minus = PerRank({rank: -value for rank, value in wait.values.items()}, wait.events)
    own = _summed([step, minus])
    return ("the profiled step without waits", own) if len(own.values) > 1 else None


def waited_for(events: EventTable) -> Iterator[Fact]:
    """Find the rank that waits much less than the others."""
    logged = _logged(events)
    wait, step = logged.wait, logged.step
    if len(wait.values) < MIN_RANKS_FOR_OUTLIER:
        wait, step = _traced_waits(events)
    if len(wait.values) < MIN_RANKS_FOR_OUTLIER:
        return
    rank = min(wait.values, key=lambda item: wait.values[item])
    others = float(np.median([value for other, value in wait.values.items() if other != rank]))
    if others <= 0:
        return
    ratio = wait.values[rank] / others
    says = f"Rank {rank} waits {number(wait.values[rank])} s a step for the others, who wait {number(others)} s."
    yield from emit("ranks.wait_ratio", ratio, says, events=[wait.events[rank]])
    lasting = float(np.median(list(step.values.values()))) if step.values else 0.0
    if lasting > 0:
        share = others / lasting
        yield from emit("ranks.wait_share", share, f"The other ranks wait {percent(share)} of each step.")
    if ratio < LESS_THAN_OTHERS:
        yield from emit("ranks.wait_outlier", rank, says, events=[wait.events[rank]])


FACTS: tuple[FactFunction, ...] = (slowest, waited_for)

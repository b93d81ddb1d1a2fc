"""Step times and throughput over the run: level, slow steps, rhythm, drift, and the shares of data and checkpoints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.speed.step_times import MIN_POINTS, StepTimes, step_times
from rca.facts.training.curves import curves
from rca.metric_series import MetricSeries

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

CATALOGUE: Mapping[str, str] = {
    "step.median_s": "median time of a step (s)",
    "step.first_over_median": "time of the first logged step over the median: compilation and warm-up",
    "step.slow_share": "share of the logged steps that take more than three times the median",
    "step.slow_time_share": "share of the time that slow steps (twice the median) take beyond the median",
    "step.slow_steps": "number of steps that take more than twice the median",
    "step.period": "distance of the slow steps where it is regular (steps)",
    "step.drift": "median step time at the end of the run over that at its beginning",
    "step.variation": "spread of the step times over their median, outliers ignored",
    "step.data_share": "share of the step time spent waiting for data",
    "throughput.median": "median of the logged throughput, in the unit of the log",
    "throughput.drop": "share of the throughput lost between the beginning and the end of the run",
    "checkpoint.save_s": "median time of writing a checkpoint (s)",
    "checkpoint.saves": "number of checkpoints whose writing was timed",
    "checkpoint.save_share": "share of the run time that writing checkpoints took",
}

SLOW = 3.0
"""A step of more than three medians counts as slow: the outlier rule of the fact's definition."""
UNUSUAL = 2.0
"""From twice the median on, steps take part in the search for a rhythm."""
REGULAR = 0.75
"""Share of equal distances that makes slow steps periodic."""
EDGE = 0.2
"""Share of the run that stands for its beginning and for its end."""
MIN_TREND = 8
"""Points below which a beginning and an end cannot be told apart."""

ONE_SAVE_S = 2.0
"""Files that are written within two seconds of the one before belong to the same checkpoint."""

_SAVE_METRIC = re.compile(r"(?:^|[/._ -])(?:save|checkpoint|ckpt)[a-z_/. -]{0,20}(?:time|seconds|secs?|_s|duration)$")


def levels(events: EventTable) -> Iterator[Fact]:
    """How long does a step take, and which steps are slow?"""
    times = step_times(events)
    if times is None:
        return
    median = float(np.median(times.seconds))
    says = f"A step takes {number(median)} s in the median of {len(times)} points, {times.told}."
    yield from emit("step.median_s", median, says, unit="s", events=times.event_id[:1])
    if not median > 0 or len(times) < 2 * MIN_POINTS:
        return
    first = float(times.seconds[0] / median)
    says = f"The first logged step takes {number(first)} times the median."
    yield from emit("step.first_over_median", first, says, events=times.event_id[:1])
    spread = float(1.4826 * np.median(np.abs(times.seconds - median)) / median)
    says = f"Step times vary by {percent(spread)} around their median."
    yield from emit("step.variation", spread, says)
    yield from _slow(times, median)


def _slow(times: StepTimes, median: float) -> Iterator[Fact]:
    # The first point holds start-up, compilation and cache filling in every healthy run.
    later = np.arange(len(times)) > 0
    slow = (times.seconds > SLOW * median) & later
    unusual = (times.seconds > UNUSUAL * median) & later
    share = float(np.mean(slow[1:]))
    says = f"{percent(share)} of the logged steps take more than {SLOW:g} times the median of {number(median)} s."
    worst = np.flatnonzero(slow)[np.argsort(-times.seconds[slow], kind="stable")]
    yield from emit("step.slow_share", share, says, events=times.event_id[worst])
    count = int(np.count_nonzero(unusual))
    says = f"{count} points take more than {UNUSUAL:g} times the median of {number(median)} s."
    yield from emit("step.slow_steps", count, says, events=times.event_id[unusual])
    spent = float(np.sum((times.seconds * times.steps)[later]))
    lost = float(np.sum(((times.seconds - median) * times.steps)[unusual]))
    if spent > 0:
        says = f"Slow steps cost {percent(lost / spent)} of the time beyond what their number would take."
        yield from emit("step.slow_time_share", lost / spent, says, events=times.event_id[worst])
    period = rhythm(times.step, unusual)
    if period is not None:
        says = f"Every {number(period)} steps one takes more than {UNUSUAL:g} times the median."
        yield from emit("step.period", period, says, unit="steps", events=times.event_id[unusual])


def rhythm(step: Floats, slow: npt.NDArray[np.bool_]) -> float | None:
    """Return the regular distance of the slow steps, or None where they have none.

    At least three slow points are needed, with a normal one between them, and three of four distances must be equal
    to within a tenth or one logging interval.
    """
    places = step[slow]
    if len(places) < MIN_POINTS or np.any(np.diff(step) <= 0):
        return None
    apart = np.diff(places)
    period = float(np.median(apart))
    interval = float(np.median(np.diff(step)))
    if period < 2 * interval:
        return None
    close = np.abs(apart - period) <= max(interval, 0.1 * period)
    return period if float(np.mean(close)) >= REGULAR else None


def drift(events: EventTable) -> Iterator[Fact]:
    """Do steps become slower over the run?"""
    times = step_times(events)
    if times is None or times.origin == "trace":
        return
    edges = edge_medians(times.seconds)
    if edges is not None and edges[0] > 0:
        ratio = edges[1] / edges[0]
        says = (
            f"A step takes {number(edges[0])} s at the beginning and {number(edges[1])} s at the end of the run, "
            f"{times.told}."
        )
        yield from emit("step.drift", ratio, says, events=times.event_id[[0, -1]])


def throughput(events: EventTable) -> Iterator[Fact]:
    """Does throughput fall over the run?"""
    found = [item for item in curves(events, "throughput") if np.count_nonzero(item.finite & (item.value > 0)) > 2]
    if found:
        line = max(found, key=len)
        line = line.pick(line.finite & (line.value > 0))
        median = float(np.median(line.value))
        says = f"The throughput is {number(median)} in the median of {len(line)} points{line.where()}."
        yield from emit("throughput.median", median, says, unit=line.unit, events=line.event_id[:1])
        edges = edge_medians(line.value)
        ids = line.event_id[[0, -1]]
    else:
        times = step_times(events)
        if times is None or times.origin == "trace" or not (times.seconds > 0).all():
            return
        edges = edge_medians(1 / times.seconds)
        ids = times.event_id[[0, -1]]
    if edges is not None and edges[0] > 0:
        lost = 1 - edges[1] / edges[0]
        says = f"Throughput goes from {number(edges[0])} at the beginning to {number(edges[1])} at the end of the run."
        yield from emit("throughput.drop", lost, says, events=ids)


def edge_medians(values: Floats) -> tuple[float, float] | None:
    """Return the medians of the beginning and the end of a series, without its very first point (warm-up)."""
    if len(values) < MIN_TREND:
        return None
    rest = values[1:]
    width = max(3, round(EDGE * len(rest)))
    return float(np.median(rest[:width])), float(np.median(rest[-width:]))


def data_share(events: EventTable) -> Iterator[Fact]:
    """How much of a step is waiting for data?"""
    shares, ids = [], []
    for series in events.all_metrics("data_time"):
        seconds = series.value / 1000 if series.unit == "ms" else series.value
        partner = _partner(events, series)
        pair = None if partner is None else _aligned(series, partner, seconds)
        if pair is not None:
            shares.append(pair)
            ids.append(int(series.event_id[-1]))
    times = step_times(events)
    if not shares and times is not None:
        waits = [series for series in events.all_metrics("data_time") if len(series) >= MIN_POINTS]
        if waits and np.median(times.seconds) > 0:
            longest = max(waits, key=len)
            factor = 1000 if longest.unit == "ms" else 1
            shares.append(float(np.nanmedian(longest.value)) / factor / float(np.median(times.seconds)))
            ids.append(int(longest.event_id[-1]))
    if not shares:
        return
    share = float(np.median(shares))
    # More than the whole step means that the two are not of one unit.
    if np.isfinite(share) and 0 <= share <= 1.05:
        share = min(share, 1.0)
        says = f"Waiting for data takes {percent(share)} of the step time."
        yield from emit("step.data_share", share, says, events=ids)


def _partner(events: EventTable, series: MetricSeries) -> MetricSeries | None:
    same = [
        item
        for item in events.all_metrics("step_time")
        if item.source == series.source and item.rank == series.rank and len(item) >= MIN_POINTS
    ]
    return same[0] if same else None


def _aligned(data: MetricSeries, step: MetricSeries, seconds: Floats) -> float | None:
    """Return the share of data time in the sums over the points that both have, without the first (warm-up)."""
    whole = step.value / 1000 if step.unit == "ms" else step.value
    if len(data) == len(step):
        waits, total = seconds, whole
    else:
        _, left, right = np.intersect1d(data.step, step.step, return_indices=True)
        waits, total = seconds[left], whole[right]
    good = np.isfinite(waits) & np.isfinite(total) & (waits >= 0) & (total > 0)
    good[:1] = False
    if np.count_nonzero(good) < MIN_POINTS:
        return None
    return float(np.sum(waits[good]) / np.sum(total[good]))


def saving(events: EventTable) -> Iterator[Fact]:
    """How long does writing checkpoints take?"""
    timed = [
        event
        for event in events.events
        if event.kind == "log" and event.phase == "save" and isinstance(event.attr("seconds"), (int, float))
    ]
    by_source: dict[tuple[str, int | None], list[tuple[float, int]]] = {}
    for event in timed:
        by_source.setdefault((event.source, event.rank), []).append((float(event.attr("seconds")), event.event_id))
    for name in events.metric_names:
        if _SAVE_METRIC.search(name):
            for series in events.all_metrics(name):
                pairs = zip(
                    (series.value * (1e-3 if series.unit == "ms" else 1)).tolist(), series.event_id, strict=True
                )
                rows = [(value, int(event_id)) for value, event_id in pairs if np.isfinite(value) and value > 0]
                by_source.setdefault((series.source, series.rank), []).extend(rows)
    by_source = by_source if any(by_source.values()) else _between_lines(events)
    if not by_source:
        return
    # Every rank tells of the same save, so the one that tells most stands for all.
    (source, _), rows = max(
        ((key, rows) for key, rows in by_source.items() if rows), key=lambda item: sum(value for value, _ in item[1])
    )
    seconds = np.array([value for value, _ in rows])
    ids = [event_id for _, event_id in rows]
    median = float(np.median(seconds))
    says = f"{len(rows)} checkpoints were written, one in {number(median)} s in the median."
    yield from emit("checkpoint.save_s", median, says, unit="s", events=ids)
    yield from emit("checkpoint.saves", len(rows), says, events=ids)
    whole = _duration(events, source)
    if whole is not None and 0 < seconds.sum() <= whole * 1.05:
        share = min(float(seconds.sum()) / whole, 1.0)
        says = f"Writing checkpoints took {number(float(seconds.sum()))} s of {number(whole)} s, {percent(share)}."
        yield from emit("checkpoint.save_share", share, says, events=ids)


def _between_lines(events: EventTable) -> dict[tuple[str, int | None], list[tuple[float, int]]]:
    """Return seconds and event of each save whose beginning and end have lines with a time, several files as one."""
    began: dict[tuple[str, int | None], int] = {}
    ended: dict[tuple[str, int | None], int] = {}
    found: dict[tuple[str, int | None], list[tuple[float, int]]] = {}
    lines = (*events.named("checkpoint.save_began", kind="log"), *events.named("checkpoint.saved", kind="log"))
    once = {(event.source, event.line) for event in events.named("checkpoint.save_began", kind="log")}
    for event in sorted(lines, key=lambda item: item.event_id):
        key = event.source, event.rank
        if event.time is None or (event.name == "checkpoint.saved" and (event.source, event.line) in once):
            continue
        if event.name == "checkpoint.save_began":
            began[key] = event.time
        elif key in began:
            rows = found.setdefault(key, [])
            took = (event.time - began.pop(key)) / 1e6
            if rows and event.time - took * 1e6 - ended[key] < ONE_SAVE_S * 1e6:
                rows[-1] = rows[-1][0] + took, event.event_id
            else:
                rows.append((took, event.event_id))
            ended[key] = event.time
    return {key: rows for key, rows in found.items() if sum(seconds for seconds, _ in rows) > 0}


def _duration(events: EventTable, source: str) -> float | None:
    """Return the seconds between the first and the last timed row of the source, else of all sources."""
    for table in (
        events.table.filter(pc.equal(events.table["source"].cast(pa.string()), source)),
        events.table,
    ):
        ends = pc.min_max(table["time"].cast(pa.int64())).as_py()
        if ends["min"] is not None and ends["max"] > ends["min"]:
            return float(ends["max"] - ends["min"]) / 1e6
    return None


FACTS: tuple[FactFunction, ...] = (levels, drift, throughput, data_share, saving)

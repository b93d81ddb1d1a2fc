"""A server under load: is its cache full, do requests wait, and what do more devices or more requests at once cost?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.memo import once_per_table
from rca.metric_series import MetricSeries

CATALOGUE: Mapping[str, str] = {
    "server.cache_full_share": "share of the readings under load with 95 % or more of the key-value cache in use",
    "server.waiting_share": "requests that wait over all that are in the server, median of the readings under load",
    "server.running_drop": "share of the running requests lost between the busiest readings and the last third",
    "serving.parallel_speedup": "tokens a second with the most devices over that with the fewest, requests being equal",
    "serving.parallel_devices": "devices a model is split over in that comparison, at most",
    "serving.concurrency_cost": "time per token at the highest over that at the lowest number of requests at once (x)",
    "serving.concurrency_range": "highest over lowest number of requests at once in that comparison",
}
_FULL = 0.95
_FEWEST = 5
"""Readings below which nothing is told."""
_RANGE = 4.0
"""Requests at once must differ by this factor before their cost is told."""
_NAMES = {
    "running": ("requests_running", "num_requests_running", "num_running_reqs", "tgi_batch_current_size"),
    "waiting": ("requests_waiting", "num_requests_waiting", "num_queue_reqs", "tgi_queue_size"),
    "cache": ("kv_cache_usage", "kv_cache_usage_perc", "gpu_cache_usage_perc", "token_usage"),
    "speed": ("generation_throughput", "avg_generation_throughput_toks_per_s", "gen_throughput"),
}
CONCURRENCY = ("concurrency", "max_concurrency", "users", "clients", "num_concurrent", "streams")
"""Columns of a load test: requests that its clients send at once."""
_SPLITS = ("tensor_parallel_size", "tensor_parallel", "tp", "tp_size", "num_gpus", "gpus", "n_gpus", "world_size")
_SPEEDS = ("output_throughput", "tokens_per_s", "tok_s", "output_tok_s", "throughput", "tokens_per_second")
_TOKEN_TIMES = ("mean_tpot_ms", "median_tpot_ms", "tpot_ms", "mean_itl_ms", "median_itl_ms", "itl_ms", "ms_per_token")


class _Load(NamedTuple):
    """The readings of one source, one an interval."""

    source: str
    running: npt.NDArray[np.float64]
    waiting: npt.NDArray[np.float64]
    cache: npt.NDArray[np.float64]
    speed: npt.NDArray[np.float64]
    event_id: npt.NDArray[np.int64]


@once_per_table
def loads(events: EventTable) -> tuple[_Load, ...]:
    """Return what each source tells of its load; NaN where a reading is not told."""
    found: dict[str, dict[str, MetricSeries]] = {}
    for role, names in _NAMES.items():
        for name in events.metric_names:
            if name.rsplit(":", 1)[-1] in names:
                for series in events.all_metrics(name):
                    if len(series) > len(found.get(series.source, {}).get(role, ())):
                        found.setdefault(series.source, {})[role] = series
    readings: list[_Load] = []
    for source, roles in sorted(found.items()):
        running = roles.get("running")
        if running is None:
            continue
        size = len(running)
        waiting, cache, speed = (
            roles[role].value if role in roles and len(roles[role]) == size else np.full(size, np.nan)
            for role in ("waiting", "cache", "speed")
        )
        readings.append(_Load(source, running.value, waiting, cache, speed, running.event_id))
    return tuple(readings)


def pressure(events: EventTable) -> Iterator[Fact]:
    """Is the cache full and do requests wait for it?"""
    found = max(loads(events), key=lambda one: len(one.running), default=None)
    if found is None:
        return
    busy = found.running > 0
    if busy.sum() < _FEWEST:
        return
    cache, waiting, running = found.cache[busy], found.waiting[busy], found.running[busy]
    shown = found.event_id[busy]
    if np.isfinite(cache).all():
        share = float(np.mean(cache >= _FULL))
        says = f"The key-value cache was full to {percent(_FULL)} or more in {percent(share)} of {len(cache)} readings."
        yield from emit("server.cache_full_share", round(share, 4), says, events=shown[cache >= _FULL][:3])
    if np.isfinite(waiting).all():
        share = float(np.median(waiting / (waiting + running)))
        says = f"In the median reading {percent(share)} of the requests in the server wait."
        yield from emit("server.waiting_share", round(share, 4), says, events=shown[np.argsort(-waiting)[:3]])
    busiest, late = float(np.percentile(running, 95)), float(np.median(running[-max(1, len(running) // 3) :]))
    says = f"{number(busiest)} requests ran at once at the busiest, {number(late)} in the last third of the readings."
    yield from emit("server.running_drop", round(1 - late / busiest, 4), says, events=shown[-3:])


def parallel(events: EventTable) -> Iterator[Fact]:
    """Does a model that is split over more devices answer faster, at the same number of requests?"""
    devices = {event.source: event for event in events.named("tensor_parallel_size", kind="config") if event.value}
    told: list[tuple[float, _Load, int]] = []
    compared = _in_table(events)
    if compared is not None:
        (few_of, slow, low), (many_of, fast, high) = compared
        says = f"{number(few_of)} devices generate {number(slow)} tokens a second and {number(many_of)} devices"
        says += f" {number(fast)}, requests being equal."
        yield from emit("serving.parallel_speedup", round(fast / slow, 3), says, events=[low, high])
        yield from emit("serving.parallel_devices", int(many_of), says, events=[high])
        return
    for found in loads(events):
        size = devices.get(found.source)
        if size is not None and size.value is not None and np.isfinite(found.speed).any():
            told.append((float(size.value), found, size.event_id))
    if not told:
        return
    few, many = min(told, key=lambda one: one[0]), max(told, key=lambda one: one[0])
    pair = _at_equal_load(few[1], many[1]) if many[0] > few[0] else None
    if pair is not None:
        level, slow, fast = pair
        says = f"With {number(level)} requests at once {number(few[0])} devices generate {number(slow)} tokens a second"
        says += f" and {number(many[0])} devices {number(fast)}."
        yield from emit("serving.parallel_speedup", round(fast / slow, 3), says, events=[few[2], many[2]])
        yield from emit("serving.parallel_devices", int(many[0]), says, events=[many[2]])


def _in_table(events: EventTable) -> tuple[tuple[float, float, int], tuple[float, float, int]] | None:
    """Return (devices, tokens a second, event) of a table's smallest and largest split, at the highest common load."""
    for name in _SPLITS:
        for devices in events.all_metrics(name):
            speeds = [one for column in _SPEEDS for one in events.all_metrics(column)
                      if one.source == devices.source and len(one) == len(devices)]  # fmt: skip
            levels = [one for column in CONCURRENCY for one in events.all_metrics(column)
                      if one.source == devices.source and len(one) == len(devices)]  # fmt: skip
            if not speeds or len(np.unique(devices.value)) < 2:
                continue
            load = levels[0].value if levels else np.ones(len(devices))
            few, many = float(devices.value.min()), float(devices.value.max())
            for level in sorted(set(load[devices.value == few]) & set(load[devices.value == many]), reverse=True):
                one, other = (int(np.flatnonzero((devices.value == size) & (load == level))[0]) for size in (few, many))
                slow, fast = float(speeds[0].value[one]), float(speeds[0].value[other])
                if slow > 0 and fast > 0:
                    shown = speeds[0].event_id
                    return (few, slow, int(shown[one])), (many, fast, int(shown[other]))
    return None


def _at_equal_load(one: _Load, other: _Load) -> tuple[float, float, float] | None:
    """Return the highest number of running requests that both told, and the median speed of each there."""
    common = sorted({int(level) for level in one.running if level > 0} & {int(level) for level in other.running})
    for level in reversed(common):
        speeds = [item.speed[(item.running == level) & (item.speed > 0)] for item in (one, other)]
        if all(len(values) >= _FEWEST for values in speeds):
            return float(level), float(np.median(speeds[0])), float(np.median(speeds[1]))
    return None


def concurrency(events: EventTable) -> Iterator[Fact]:
    """How much slower does a token come when many requests run at once?"""
    told = _table(events) or _readings(events)
    if told is None:
        return
    levels, times, shown = told
    low, high = float(levels.min()), float(levels.max())
    if high / low < _RANGE:
        return
    first, last = float(np.median(times[levels == low])), float(np.median(times[levels == high]))
    says = (
        f"A token takes {number(first)} ms with {number(low)} requests at once and {number(last)} with {number(high)}."
    )
    yield from emit("serving.concurrency_cost", round(last / first, 3), says, events=shown)
    yield from emit("serving.concurrency_range", round(high / low, 3), says, events=shown)


def _table(
    events: EventTable,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.int64]] | None:
    """Read a table of a load test: a column of requests at once beside one of times per token."""
    for name in CONCURRENCY:
        for levels in events.all_metrics(name):
            for column in _TOKEN_TIMES:
                for times in events.all_metrics(column):
                    if times.source == levels.source and len(times) == len(levels) >= 2:
                        good = np.isfinite(times.value) & (times.value > 0) & (levels.value > 0)
                        if good.all():
                            return levels.value, times.value, times.event_id
    return None


def _readings(
    events: EventTable,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.int64]] | None:
    """Derive the time per token from the speed that a server prints beside the number of running requests."""
    found = max(loads(events), key=lambda one: len(one.running), default=None)
    if found is None:
        return None
    good = (found.running > 0) & np.isfinite(found.speed) & (found.speed > 0)
    if good.sum() < _FEWEST or (np.isfinite(found.waiting) & (found.waiting > 0))[good].any():
        return None
    return found.running[good], 1000 * found.running[good] / found.speed[good], found.event_id[good]


FACTS: tuple[FactFunction, ...] = (pressure, parallel, concurrency)

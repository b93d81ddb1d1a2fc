"""Inference: time per token over length, speed, latency, and what generations look like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.serving.request_log import Requests, group_of, requests
from rca.metric_series import MetricSeries

CATALOGUE: Mapping[str, str] = {
    "latency.token_growth": "time per token of long over short requests, for the model where it grows most (x)",
    "latency.token_growth_least": "the same for the model where it grows least, where several are told (x)",
    "latency.ms_per_token": "median time per generated token (ms)",
    "latency.tokens_per_s": "median tokens generated per second of one request (tokens/s)",
    "latency.p50_s": "median latency of a request (s)",
    "latency.p95_s": "95th percentile of the latency of a request (s)",
    "latency.jump": "latency at the end over the latency before, where it jumped or not (x)",
    "latency.tail_ratio": "95th percentile over median of the time of one request, file or chunk (x)",
    "generation.hits_limit_share": "share of generations that ended at the length limit",
    "generation.repeats": "generations repeat themselves",
    "generation.repetition": "median share of repeated 4-grams in the generated texts",
    "requests.count": "requests whose lengths and times are told",
    "requests.error_share": "share of requests with a status of 400 or more",
    "server.kv_cache_usage": "highest share of the key-value cache in use",
    "server.waiting": "highest number of requests that waited",
    "server.preemptions": "preempted requests",
}
_FEWEST = 8
"""Requests below which a trend over length is not told."""
_SPREAD = 1.5
"""Ratio of the 90th to the 10th percentile of the length that a trend needs."""
_SHORTEST_OUTPUT = 4
_FEWEST_LISTS = 2
_LOOPING = 0.5
"""Share of repeated 4-grams above which a text loops; ordinary English stays below 0.1 in a few hundred words."""
_LOOPING_SHARE = 0.2
_TIMES = ("wall_s", "wall", "wall_time", "elapsed_s", "elapsed", "seconds", "duration_s", "proc_s", "decode_s")
_FEWEST_TIMES = 20
_QUANTILES = ("p50_ms", "p95_ms", "p99_ms", "p50_s", "p95_s", "p99_s", "ms_per_token")
_LATENCIES = ("latency_ms", "latency_s", "latency", "e2e", "e2e_s")
"""A single request's latency follows its length, so it counts only where no lengths are told."""


def token_time(events: EventTable) -> Iterator[Fact]:
    """Does the time per token grow with the length, as without a key-value cache?"""
    found = [(growth, item.group or item.source, item.event_id[:3]) for item in requests(events)
             if (growth := _growth(item)) is not None] + _within(events)  # fmt: skip
    if not found:
        return
    growth, worst, shown = max(found, key=lambda one: one[0])
    least, best, other = min(found, key=lambda one: one[0])
    says = f"A token of {worst} takes {number(growth)} times as long in the longest requests as in the shortest."
    yield from emit("latency.token_growth", round(growth, 3), says, events=shown)
    if best != worst:
        says = f"For {best} the ratio is {number(least)}."
        yield from emit("latency.token_growth_least", round(least, 3), says, events=other)


def _within(events: EventTable) -> list[tuple[float, str, npt.NDArray[np.int64]]]:
    """Return the growth from the first to the last tokens of one generation, in the median of each model."""
    groups: dict[str, list[tuple[float, int]]] = {}
    for series in events.all_metrics("token_time_growth"):
        for value, event_id in zip(series.value, series.event_id, strict=True):
            label = group_of(events.get(int(event_id)).attrs or {}) or series.source
            groups.setdefault(label, []).append((float(value), int(event_id)))
    return [
        (float(np.median([value for value, _event in rows])), label, np.array([event for _value, event in rows[:3]]))
        for label, rows in sorted(groups.items())
        if len(rows) >= _FEWEST_LISTS
    ]


def _growth(item: Requests) -> float | None:
    """Return the fitted time per token at the 90th over that at the 10th percentile of the length.

    The line is Theil and Sen's: the median slope, so that a few slow requests do not make a trend.
    """
    from scipy.stats import theilslopes

    good = np.isfinite(item.ms_per_token) & (item.output >= _SHORTEST_OUTPUT) & (item.context > 0)
    if good.sum() < _FEWEST:
        return None
    lengths, times = item.context[good], item.ms_per_token[good]
    if len(lengths) > 500:
        picked = np.linspace(0, len(lengths) - 1, 500).astype(int)
        lengths, times = lengths[picked], times[picked]
    low, high = np.percentile(lengths, [10, 90])
    if low <= 0 or high / low < _SPREAD:
        return None
    with np.errstate(invalid="ignore"):  # the confidence interval, which is not used, has none for equal lengths
        slope, intercept, *_ = theilslopes(times, lengths)
    start = intercept + slope * low
    return float((intercept + slope * high) / start) if start > 0 else None


def speed(events: EventTable) -> Iterator[Fact]:
    """How fast are tokens generated, and how long does a request take?"""
    found = requests(events)
    if not found:
        return
    item = max(found, key=lambda one: len(one.output))
    shown = item.event_id[:1]
    yield from emit(
        "requests.count", sum(len(one.output) for one in found), "Requests tell their lengths and times.", events=shown
    )
    per_token = item.ms_per_token[np.isfinite(item.ms_per_token) & (item.ms_per_token > 0)]
    if len(per_token):
        middle = float(np.median(per_token))
        says = f"A token takes {number(middle)} ms in the median request."
        yield from emit("latency.ms_per_token", round(middle, 3), says, unit="ms", events=shown)
        says = f"The median request generates {number(1000 / middle)} tokens a second."
        yield from emit("latency.tokens_per_s", round(1000 / middle, 3), says, unit="tokens/s", events=shown)
    latency = item.latency_s[np.isfinite(item.latency_s)]
    if len(latency):
        middle, late = (float(value) for value in np.percentile(latency, [50, 95]))
        says = f"The median request takes {number(middle)} s, one in twenty more than {number(late)} s."
        yield from emit("latency.p50_s", round(middle, 4), says, unit="s", events=shown)
        yield from emit("latency.p95_s", round(late, 4), says, unit="s", events=shown)


def jump(events: EventTable) -> Iterator[Fact]:
    """Did the latency jump within the history that a file tells?"""
    ratios: list[tuple[float, MetricSeries]] = []
    for name in _QUANTILES if requests(events) else (*_QUANTILES, *_LATENCIES):
        for series in events.all_metrics(name):
            values = series.value[np.isfinite(series.value) & (series.value > 0)]
            if len(values) >= 4:
                late = max(1, len(values) // 5)
                ratios.append((float(np.median(values[-late:]) / np.median(values[:-late])), series))
    if ratios:
        ratio, series = max(ratios, key=lambda pair: pair[0])
        says = f"{series.name} ended at {number(ratio)} times its earlier median."
        yield from emit("latency.jump", round(ratio, 3), says, events=series.event_id[-1:])


def tail(events: EventTable) -> Iterator[Fact]:
    """Do some requests, files or chunks take far longer than the usual one?"""
    names = [name for name in events.metric_names if name.rsplit(".", 1)[-1] in (*_LATENCIES, *_TIMES)]
    found = [series for name in names for series in events.all_metrics(name) if len(series) >= _FEWEST_TIMES]
    series = max(found, key=len, default=None)
    if series is None:
        return
    values = series.value[np.isfinite(series.value) & (series.value > 0)]
    if len(values) >= _FEWEST_TIMES:
        middle, late = (float(value) for value in np.percentile(values, [50, 95]))
        says = f"One in twenty of {len(values)} takes {number(late)}, the median {number(middle)} ({series.name})."
        shown = series.event_id[np.argsort(-series.value)[:3]]
        yield from emit("latency.tail_ratio", round(late / middle, 3), says, events=shown)


def generations(events: EventTable) -> Iterator[Fact]:
    """Do generations run into the limit, or repeat themselves?"""
    limited = events.all_metrics("finished_by_length")
    if limited and (values := np.concatenate([series.value for series in limited])).size:
        share = float(np.mean(values))
        says = f"{percent(share)} of {len(values)} generations ended at the length limit."
        yield from emit("generation.hits_limit_share", round(share, 4), says, events=limited[0].event_id[:1])
    else:
        yield from _finish_counters(events)
    repeated = events.all_metrics("output_repetition")
    if repeated and (values := np.concatenate([series.value for series in repeated])).size:
        looping = float(np.mean(values > _LOOPING))
        middle = float(np.median(values))
        says = f"{percent(looping)} of {len(values)} generated texts repeat most of their phrases."
        shown = repeated[0].event_id[np.argsort(-repeated[0].value)[:3]]
        yield from emit("generation.repeats", looping >= _LOOPING_SHARE, says, events=shown)
        yield from emit("generation.repetition", round(middle, 4), says, events=shown)


def _finish_counters(events: EventTable) -> Iterator[Fact]:
    """Read the share of generations at the limit off a server's counters of finished requests."""
    counts: dict[str, float] = {}
    shown: list[int] = []
    for name in events.metric_names:
        if name.endswith("request_success_total"):
            for series in events.all_metrics(name):
                for value, event_id in zip(series.value, series.event_id, strict=True):
                    reason = str((events.get(int(event_id)).attrs or {}).get("finished_reason", ""))
                    counts[reason] = counts.get(reason, 0.0) + float(value)
                    shown.append(int(event_id))
    total = sum(counts.values())
    if "length" in counts and total > 0:
        share = counts["length"] / total
        says = f"{percent(share)} of {total:.0f} generations ended at the length limit."
        yield from emit("generation.hits_limit_share", round(share, 4), says, events=shown)


def server(events: EventTable) -> Iterator[Fact]:
    """What do the server's own numbers say?"""
    statuses = events.all_metrics("status")
    values = np.concatenate([series.value for series in statuses]) if statuses else np.zeros(0)
    known = values[(values >= 100) & (values < 600)]
    if len(known):
        share = float(np.mean(known >= 400))
        says = f"{percent(share)} of {len(known)} requests failed with a status of 400 or more."
        yield from emit("requests.error_share", round(share, 4), says, events=statuses[0].event_id[:1])
    for fact, names, words in (
        ("server.kv_cache_usage", ("kv_cache_usage", "kv_cache_usage_perc", "gpu_cache_usage_perc"), "of the KV cache"),
        ("server.waiting", ("requests_waiting", "num_requests_waiting"), "waiting requests"),
        ("server.preemptions", ("num_preemptions_total", "preemptions"), "preemptions"),
    ):
        found = [series for name in events.metric_names if name.rsplit(":", 1)[-1] in names
                 for series in events.all_metrics(name)]  # fmt: skip
        if found:
            series = max(found, key=lambda one: float(np.max(one.value)))
            peak = float(np.max(series.value))
            says = f"At most {number(peak)} {words}."
            yield from emit(fact, round(peak, 5), says, events=series.event_id[[int(np.argmax(series.value))]])


FACTS: tuple[FactFunction, ...] = (token_time, speed, jump, tail, generations, server)

"""Dicts of metrics as `transformers.Trainer`, axolotl, TRL and fairseq print them."""

from __future__ import annotations

import re

from rca.ingest.training_metrics.pairs import MOST, NUMBER

_ENTRY = re.compile(
    r"""['"](?P<key>[A-Za-z][\w/ .@-]{0,80})['"]\s?:\s?['"]?(?:(?:np\.)?(?:float|int)\d{1,2}\(|tensor\()?(?P<value>"""
    + NUMBER
    + r""")['"]?(?=[,})\s'"]|$)"""
)
_METRIC_KEY = re.compile(
    r"loss|grad_norm|learning_rate|reward|accuracy|perplexity|ppl|gnorm|\bwps\b|eval_|train_runtime"
)
_USUAL = frozenset({1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000})
"""Intervals that people set."""
_SUMMARY = ("train_runtime", "train_samples_per_second", "train_steps_per_second", "total_flos")


def metric_dict(message: str) -> dict[str, float] | None:
    """Return the numeric entries of a printed dict of metrics, or None where the line holds none."""
    start = message.find("{")
    if start < 0:
        return None
    found = {
        entry["key"]: float(entry["value"].replace(",", "")) for entry in _ENTRY.finditer(message, start, start + MOST)
    }
    if not found or not any(_METRIC_KEY.search(key) for key in found):
        return None
    return found


def is_summary(found: dict[str, float]) -> bool:
    """Say whether the dict sums the whole run up, so that its loss is no point of the curve."""
    return any(key in found for key in _SUMMARY)


def logged_steps(bars: list[tuple[int, int]], count: int) -> list[int] | None:
    """Return the step of each of `count` dicts that were logged every so many steps, or None.

    `bars` holds (dicts seen before, steps done) for each state of the training bar. Trainers log at a fixed interval,
    after the bar of that step was drawn, so a bar at step n comes after n // interval dicts or one fewer. A resumed run
    starts its bar at the step it resumes from.
    """
    if len(bars) < 2 or count == 0:
        return None
    for first in dict.fromkeys((0, bars[0][1] if bars[0][0] == 0 else 0)):
        interval = _interval(bars, first)
        if interval is not None:
            return [(first // interval + index + 1) * interval for index in range(count)]
    return None


def _interval(bars: list[tuple[int, int]], first: int) -> int | None:
    """The interval that explains every state of the bar, if there is one."""
    estimates = {round((done - first) / seen) for seen, done in bars if seen > 0 and done > first}
    estimates |= {round((done - first) / (seen + 1)) for seen, done in bars if done > first}
    fitting = [interval for interval in estimates - {0} if _fits(bars, first, interval)]
    if not fitting:
        return None

    def doubt(interval: int) -> tuple[int, bool, int]:
        apart = sum(abs(done - first - seen * interval) for seen, done in bars)
        return -sum(done % interval == 0 for _, done in bars if done), interval not in _USUAL, apart

    return min(fitting, key=doubt)


def _fits(bars: list[tuple[int, int]], first: int, interval: int) -> bool:
    start = first // interval
    return all(done // interval - start - 1 <= seen <= done // interval - start for seen, done in bars)

"""Several runs of one job in the same folder: what differs in their settings, and what differs in how they went."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from rca.events import Event, EventTable
from rca.facts.emit import emit, number
from rca.facts.interface import Fact, FactFunction
from rca.facts.training.curves import Curve, curves
from rca.facts.training.spikes import find_spikes

CATALOGUE: Mapping[str, str] = {
    "runs.count": "number of runs of one job in the folder that trained over the same steps",
    "runs.differ_in": "settings in which the two runs differ that went differently, by common name",
    "runs.differences": "number of those settings",
    "runs.outcome": "what one of them has and the other has not: non_finite, spikes, diverged, or higher (loss)",
    "runs.worse_over_better": "the only numeric setting that differs, in the worse run over the better one",
}

_POINTS = 10
_OVERLAP = 0.3
"""Share of the longer step range that both runs cover; less is one run that goes on in another file."""
_SAME = 1e-3
"""Two files whose losses agree to a thousandth tell of one run twice."""
HIGHER = 1.3
"""Ratio of the last levels from which one run went worse; other seeds alone stay within a few per cent."""
_SPIKES = 3
_NO_MATTER = re.compile(
    r"(?:^|[._])(?:(?:output|logging|log|save|cache|tmp|work|run|ckpt|checkpoint|tensorboard)_?(?:dir|path|folder|root)?|"
    r"(?:run|exp|experiment|job|project|wandb)_?(?:name|id)|name|seed|port|host\w*|resume\w*|load|time\w*|date)$"
)
_MOST_DIFFERENCES = 3
"""With more settings changed at once no one of them explains the difference."""


class _Run(NamedTuple):
    key: str
    curve: Curve
    settings: dict[str, Event]


def siblings(events: EventTable) -> Iterator[Fact]:
    """Which setting separates a run that went wrong from one beside it that did not?"""
    runs = _runs(events)
    pairs = [(left, right) for left, right in combinations(runs, 2) if _beside(left.curve, right.curve)]
    if not pairs:
        return
    count = len({run.key for pair in pairs for run in pair})
    yield from emit("runs.count", count, f"The folder holds {count} runs that trained over the same steps.")
    for left, right in pairs:
        told = _outcome(left, right)
        if told is None:
            continue
        outcome, worse, better = told
        names = _differences(worse.settings, better.settings)
        if not 1 <= len(names) <= _MOST_DIFFERENCES:
            continue
        values = ", ".join(
            f"{name} {_text(worse.settings.get(name))} instead of {_text(better.settings.get(name))}" for name in names
        )
        words = {"non_finite": "has losses that are no numbers", "spikes": "has spikes", "diverged": "diverged"}
        says = (
            f"{worse.key} {words.get(outcome, 'ends with a higher loss')}, {better.key} beside it does not: {values}."
        )
        seen = [
            int(worse.curve.event_id[-1]),
            *(event.event_id for run in (worse, better) for name in names if (event := run.settings.get(name))),
        ]
        yield from emit("runs.outcome", outcome, says, events=seen)
        yield from emit("runs.differ_in", ", ".join(names), says, events=seen)
        yield from emit("runs.differences", len(names), says, events=seen)
        numbers = [event.value for run in (worse, better) if (event := run.settings.get(names[0])) is not None]
        if len(names) == 1 and len(numbers) == 2 and numbers[0] is not None and numbers[1]:
            yield from emit("runs.worse_over_better", numbers[0] / numbers[1], says, unit="x", events=seen)
        return


def _runs(events: EventTable) -> list[_Run]:
    """Return the folder's runs: training losses of different sources that are not ranks of one job."""
    found: dict[str, Curve] = {}
    for line in curves(events, "loss"):
        key = _key(line.source)
        if line.rank in {None, 0} and len(line) >= _POINTS and (key not in found or len(line) > len(found[key])):
            found[key] = line
    if len(found) < 2:
        return []
    settings: dict[str, dict[str, Event]] = {key: {} for key in found}
    for event in events.of_kind("config"):
        key = _key(event.source)
        if key in settings and not _NO_MATTER.search(event.name) and event.attr("from") != "progress":
            settings[key].setdefault(event.name, event)
    return [_Run(key, line, settings[key]) for key, line in sorted(found.items()) if settings[key]]


def _key(source: str) -> str:
    """The folder of a source where it lies in one, else the file."""
    return source.split("/", 1)[0] if "/" in source else source


def _beside(left: Curve, right: Curve) -> bool:
    """Say whether two curves are of two runs over the same steps, and not of one run."""
    if not (np.isfinite(left.step).all() and np.isfinite(right.step).all()):
        return False
    low, high = max(left.step.min(), right.step.min()), min(left.step.max(), right.step.max())
    longest = max(np.ptp(left.step), np.ptp(right.step))
    shortest = min(np.ptp(left.step), np.ptp(right.step))
    if shortest <= 0 or high - low < min(_OVERLAP * longest, 0.8 * shortest):
        return False
    common, here, there = np.intersect1d(left.step, right.step, return_indices=True)
    if len(common) < 2:
        return True
    first, second = left.value[here], right.value[there]
    both = np.isfinite(first) & np.isfinite(second)
    if (np.isfinite(first) != np.isfinite(second)).any() or not both.any():
        return bool((np.isfinite(first) != np.isfinite(second)).any())
    return bool(np.median(np.abs(first[both] - second[both])) > _SAME * max(np.median(np.abs(second[both])), 1e-9))


def _outcome(left: _Run, right: _Run) -> tuple[str, _Run, _Run] | None:
    """Return what went wrong in one of two runs only, with the worse and the better one."""
    for kind, measured in (("non_finite", _broken), ("diverged", _diverged), ("spikes", _spiky)):
        bad = measured(left.curve), measured(right.curve)
        if bad[0] != bad[1]:
            return (kind, left, right) if bad[0] else (kind, right, left)
        if bad[0]:
            return None
    first, second = _level(left.curve), _level(right.curve)
    if min(first, second) <= 0 or max(first, second) < HIGHER * min(first, second):
        return None
    return ("higher", left, right) if first > second else ("higher", right, left)


def _broken(line: Curve) -> bool:
    return not bool(np.isfinite(line.value).all())


def _diverged(line: Curve) -> bool:
    smooth = np.convolve(line.value, np.ones(5) / 5, mode="valid")
    low = float(smooth.min())
    return bool(low > 0 and smooth[-1] > low + 0.5 * max(float(smooth[0]) - low, low))


def _spiky(line: Curve) -> bool:
    progress = float(np.median(line.value[:5]) - np.median(line.value[-5:]))
    return len(find_spikes(line, progress=max(progress, 0.0), climb=None)) >= _SPIKES


def _level(line: Curve) -> float:
    return float(np.median(line.value[-max(5, len(line) // 10) :]))


def _differences(left: Mapping[str, Event], right: Mapping[str, Event]) -> Sequence[str]:
    """Return the names of settings that both runs tell with other values; what only one tells is not known."""
    return [name for name in sorted(left.keys() & right.keys()) if left[name].text.strip() != right[name].text.strip()]


def _text(event: Event | None) -> str:
    if event is None:
        return "(not told)"
    return number(event.value) if event.value is not None else event.text[:60]


FACTS: tuple[FactFunction, ...] = (siblings,)

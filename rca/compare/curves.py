"""Curves of two runs at the same steps: how far apart they end, and from where on they stay apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rca.baseline import CurveDifference
from rca.collect.series import POINTS, curves, thinned
from rca.compare.interface import Side
from rca.facts.emit import number
from rca.facts.training.curves import Curve, curve

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

LEAST = 5
"""Points that both curves need at the same steps."""
TAIL = 0.1
"""Share of the compared points, at least `LEAST`, whose medians are compared."""
APART = 0.1
"""Two curves that differ by less than a tenth are together, however little they scatter."""
SCATTER = 4.0
"""Standard deviations of the scatter (median absolute deviation around the running median, both curves) beyond which a
difference is none of chance: with four, one in 16,000 points of normal noise."""
WINDOW = 5
"""Points of the running median: one outlier does not part two curves."""
STAYS = 3
"""Points that must follow the parting."""


def compare_curves(run: Side, healthy: Side) -> tuple[CurveDifference, ...]:
    """Return every known curve that both runs have at enough common steps."""
    return tuple(_compared(run, healthy))


def _compared(run: Side, healthy: Side) -> Iterator[CurveDifference]:
    labels = {series.name: series for series in curves(run.events)}
    for name, series in labels.items():
        ours, theirs = curve(run.events, name), curve(healthy.events, name)
        pair = None if ours is None or theirs is None else _aligned(ours, theirs)
        if pair is None or theirs is None:
            continue
        tail = max(LEAST, int(TAIL * len(pair.step)))
        value, baseline = (float(np.median(side[-tail:])) for side in (pair.ours, pair.theirs))
        ratio = value / baseline if value > 0 and baseline > 0 and np.isfinite(value / baseline) else None
        parts = _parting(pair)
        yield CurveDifference(
            name=name,
            label=series.label,
            unit=series.unit,
            points=len(pair.step),
            value=value,
            baseline=baseline,
            ratio=ratio,
            parts_at=parts,
            says=_sentence(series.label, value, baseline, series.unit, parts=parts, counted=pair.counted),
            x_name=series.x_name,
            healthy=tuple(
                thinned(theirs.step if pair.counted else np.arange(len(theirs)), theirs.value, points=POINTS)
            ),
        )


class _Pair(NamedTuple):
    step: Floats
    ours: Floats
    theirs: Floats
    counted: bool
    """Whether the positions are optimizer steps."""


def _aligned(ours: Curve, theirs: Curve) -> _Pair | None:
    """Both curves where both have a point; by their order where one of them tells no steps.

    Tokens and samples a second are not compared, nor is anything else in two units.
    """
    if ours.unit and theirs.unit and ours.unit != theirs.unit:
        return None
    if np.isfinite(ours.step).all() and np.isfinite(theirs.step).all():
        here, there = _last_of_each(ours), _last_of_each(theirs)
        step, left, right = np.intersect1d(here.step, there.step, assume_unique=True, return_indices=True)
        pair = _Pair(step, here.value[left], there.value[right], counted=True)
        if len(step) < LEAST:
            pair = _between(here, there)
    else:
        count = min(len(ours), len(theirs))
        pair = _Pair(np.arange(count, dtype=float), ours.value[:count], theirs.value[:count], counted=False)
    kept = np.isfinite(pair.theirs)
    pair = _Pair(pair.step[kept], pair.ours[kept], pair.theirs[kept], pair.counted)
    return pair if len(pair.step) >= LEAST else None


def _last_of_each(line: Curve) -> Curve:
    """The last value of every step, in the order of the steps: a resumed run repeats some."""
    _, first = np.unique(line.step[::-1], return_index=True)
    return line.pick(len(line) - 1 - first)


def _between(here: Curve, there: Curve) -> _Pair:
    """Our points that lie between points of the healthy run, which logged at other steps."""
    inside = (here.step >= there.step[0]) & (here.step <= there.step[-1])
    step = here.step[inside]
    return _Pair(step, here.value[inside], np.interp(step, there.step, there.value), counted=True)


def _parting(pair: _Pair) -> float | None:
    """The first step from which the curves stay apart to the end, or None."""
    from scipy.ndimage import median_filter
    from scipy.stats import median_abs_deviation

    positive = bool((pair.theirs > 0).all() and (pair.ours[np.isfinite(pair.ours)] > 0).all())
    finite = np.isfinite(pair.ours)
    if not finite.any():
        return float(pair.step[0])
    ours = np.where(finite, pair.ours, np.nan)
    with np.errstate(invalid="ignore"):
        left, right = (np.log(ours), np.log(pair.theirs)) if positive else (ours, pair.theirs)
    least = np.log1p(APART) if positive else APART * float(np.median(np.abs(right)))
    filled = np.interp(pair.step, pair.step[finite], left[finite])
    gap = np.where(finite, median_filter(np.abs(filled - right), WINDOW, mode="nearest"), np.inf)
    scatter = [
        float(median_abs_deviation(side - median_filter(side, WINDOW, mode="nearest"), scale="normal"))
        for side in (filled, right)
    ]
    together = np.flatnonzero(gap <= max(least, SCATTER * math.hypot(*scatter)))
    first = int(together[-1]) + 1 if len(together) else 0
    broke = first < len(gap) and not finite[first:].any()
    return float(pair.step[first]) if broke or len(gap) - first >= STAYS else None


def _sentence(label: str, value: float, baseline: float, unit: str, *, parts: float | None, counted: bool) -> str:
    unit = f" {unit}" if unit else ""
    end = f"{label} is {number(value)}{unit} at the last common steps, {number(baseline)}{unit} in the healthy run"
    if parts is None:
        return f"{end}; the curves do not part."
    return f"{end}; they part at {'step' if counted else 'point'} {number(parts)}."

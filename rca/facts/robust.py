"""Robust statistics in plain numpy: medians where one outlier must not decide."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

_ROWS = 20_000
"""Windows computed at once, so that a long curve does not need a matrix of all windows."""


def spread(values: Floats) -> float:
    """Return 1.4826 times the median absolute deviation: the standard deviation of a normal sample; 0 when empty."""
    if len(values) == 0:
        return 0.0
    return float(1.4826 * np.median(np.abs(values - np.median(values))))


def running_median(values: Floats, window: int) -> Floats:
    """Return the centred running median; `window` is made odd and no longer than the series."""
    half = min(max(window // 2, 0), max(len(values) - 1, 0))
    if half == 0:
        return values.astype(float)
    return _window_medians(np.pad(values, half, mode="reflect"), 2 * half + 1)


def trailing_median(values: Floats, window: int) -> Floats:
    """Return for each point the median of the `window` points before it; NaN for the first one."""
    found = np.full(len(values), math.nan)
    for index in range(1, min(window, len(values))):
        found[index] = np.median(values[:index])
    if len(values) > window:
        found[window:] = _window_medians(values[:-1], window)
    return found


def block_medians(values: Floats, blocks: int) -> Floats:
    """Return the medians of that many stretches of equal length; the values themselves when there are no more."""
    if len(values) <= blocks:
        return values.astype(float)
    return np.array([np.median(part) for part in np.array_split(values, blocks)])


def _window_medians(values: Floats, window: int) -> Floats:
    windows = np.lib.stride_tricks.sliding_window_view(values, window)
    parts = [np.median(windows[start : start + _ROWS], axis=1) for start in range(0, len(windows), _ROWS)]
    return np.concatenate(parts)


def ranks(values: Floats) -> Floats:
    """Return ranks, ties averaged."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    mean_rank = ends - (counts - 1) / 2.0
    return np.asarray(mean_rank[inverse], dtype=float)


def spearman(left: Floats, right: Floats) -> float:
    """Return Spearman's rank correlation; 0 for fewer than three points or a constant side."""
    if len(left) < 3:
        return 0.0
    first, second = ranks(left), ranks(right)
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def slope_t(values: Floats) -> tuple[float, float]:
    """Return the least-squares slope per point and its t statistic (0, 0 for fewer than four points)."""
    count = len(values)
    if count < 4:
        return 0.0, 0.0
    x = np.arange(count, dtype=float) - (count - 1) / 2
    scale = float(np.max(np.abs(values))) or 1.0
    y = values / scale - np.mean(values / scale)
    total = float(np.sum(x * x))
    slope = float(np.sum(x * y) / total)
    residual = float(np.sum((y - slope * x) ** 2))
    if residual <= 1e-24:
        return slope * scale, 0.0 if abs(slope) < 1e-15 else math.copysign(math.inf, slope)
    return slope * scale, slope / math.sqrt(residual / (count - 2) / total)


def runs(mask: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the stretches where the mask holds, as (first, behind the last)."""
    padded = np.concatenate(([False], mask, [False]))
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    return [(int(start), int(end)) for start, end in zip(edges[::2], edges[1::2], strict=True)]

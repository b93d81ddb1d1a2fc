"""Histograms of TensorBoard event files as summary statistics: both the old message and the tensor of buckets."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np


class Summary(NamedTuple):
    """What a histogram says of the values of one tensor."""

    norm: float
    """Root of the sum of squares: the L2 norm of the tensor; NaN where a value was not finite."""
    note: str
    """JSON text: count, min, max, mean, std, share of values that are not finite."""


def of_message(histogram: Any) -> Summary | None:
    """Summarise a HistogramProto, whose sums are exact; None where it counts nothing."""
    count, total, squares = histogram.num, histogram.sum, histogram.sum_squares
    if not count > 0:
        return None
    lost = 0.0
    if not (math.isfinite(total) and math.isfinite(squares)):
        # Writers count what is not finite, and no bucket holds it.
        lost = 1 - min(float(np.sum(np.array(histogram.bucket))), count) / count
    return _summary(count, histogram.min, histogram.max, total, squares, lost=lost)


def of_buckets(tensor: Any) -> Summary | None:
    """Summarise a tensor of rows (left edge, right edge, count), taking values to lie in the middle of their bucket.

    None where the tensor is of another shape or counts nothing.
    """
    held = tensor.tensor_content
    if tensor.dtype != 2 or len(held) % 24:
        return None
    cells = np.frombuffer(held, "<f8") if held else np.array(tensor.double_val)
    if not len(cells) or len(cells) % 3:
        return None
    left, right, counts = cells.reshape(-1, 3).T
    count = float(np.sum(counts))
    if not count > 0:
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        middle = left / 2 + right / 2
        total, squares = float(np.sum(counts * middle)), float(np.sum(counts * middle * middle))
    filled = np.flatnonzero(counts > 0)
    return _summary(count, float(left[filled[0]]), float(right[filled[-1]]), total, squares, lost=0.0)


def _summary(count: float, low: float, high: float, total: float, squares: float, *, lost: float) -> Summary:
    mean = total / count
    spread = squares / count - mean * mean
    std = math.sqrt(max(spread, 0.0)) if math.isfinite(spread) else math.nan
    # Written by hand: of tens of thousands of histograms json.dumps would cost as much as all the rest.
    note = (
        f'{{"count": {_known(count)}, "max": {_known(high)}, "mean": {_known(mean)}, "min": {_known(low)}, '
        f'"non_finite_share": {round(lost, 6)}, "of": "histogram", "std": {_known(std)}}}'
    )
    return Summary(math.sqrt(squares) if squares >= 0 else math.nan, note)


def _known(value: float) -> float | str:
    """Return a number as JSON writes it."""
    return float(value) if math.isfinite(value) else "null"

"""Lengths put into batches: how much of what is computed is padding. Counts only; needs numpy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rca.experiments.loops.config import LoopConfig, Setting

_EPOCHS = 5
_DRAWN = 512
_MOST_SPREAD = 3.0


def pad(config: LoopConfig, setting: Setting) -> dict[str, float]:
    """Return `pad_share`, and `positions`: positions computed for each useful one."""
    lengths = np.asarray(setting.lengths, dtype=np.int64)
    order = np.random.default_rng(config.seed)
    useful = computed = 0
    for _ in range(_EPOCHS):
        drawn = lengths[order.permutation(len(lengths))]
        if config.grouping == "length":
            drawn = np.sort(drawn, kind="stable")
        for start in range(0, len(drawn), config.batch):
            batch = drawn[start : start + config.batch]
            longest = setting.maximum if config.padding == "max_length" else int(batch.max())
            useful += int(np.minimum(batch, longest).sum())
            computed += longest * len(batch)
    return {"pad_share": 1 - useful / computed, "positions": computed / useful}


def lengths_with(share: float, *, batch: int, maximum: int) -> tuple[int, ...]:
    """Return log-normal lengths whose random batches hold that share of padding; `maximum` pads all to that length."""
    share = min(max(share, 0.0), 0.95)
    if maximum:
        middle = math.log(max(1.0, (1 - share) * maximum))
        return _lengths(_normal(), middle - 0.02, 0.2, maximum)
    low, high = 0.0, _MOST_SPREAD
    for _ in range(30):
        middle = (low + high) / 2
        found = _lengths(_normal(), 5.0, middle, 0)
        high, low = (middle, low) if _share(found, batch) > share else (high, middle)
    return _lengths(_normal(), 5.0, high, 0)


def _normal() -> npt.NDArray[np.float64]:
    return np.random.default_rng(7).normal(size=_DRAWN)


def _lengths(draws: npt.NDArray[np.float64], middle: float, spread: float, maximum: int) -> tuple[int, ...]:
    values = np.exp(middle + spread * draws).round()
    return tuple(int(value) for value in np.clip(values, 1, maximum or 2**20))


def _share(lengths: Sequence[int], batch: int) -> float:
    return pad(LoopConfig(loop="pad", batch=batch), Setting(lengths=tuple(lengths)))["pad_share"]

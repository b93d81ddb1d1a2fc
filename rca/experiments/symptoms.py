"""What a training looks like from outside, in a few words that hold for the run and for its twin.

`nan_at_start`      the first loss values are not finite
`nan_abrupt`        ordinary values, then none that is finite
`nan_after_growth`  the loss grew at least twofold before it stopped being finite
`nan_isolated`      some values are not finite, finite ones follow
`skipping`          the loss scaler skipped at least ten updates in a row (or reached its floor)
`diverged`          finite, but rose above its start or lost half of its progress
`plateau`           learnt at first, then stayed high
`stuck`             never left its start
`slow`              still falling when it ended, far above what was possible
`oscillating`       the loss varies by more than 15 % of its level around its trend
`out_of_memory`     a device had no room for an allocation
`memory_grows`      device memory grew step after step
`tokens_slow_down`  generated tokens take longer the longer the text is

A control arm must show what the run showed. Where the run's own settings already fail on the twin, the failure is its
own and the kinds are compared loosely: fp32 Adam at a too high rate gives a plateau or a spike where a longer run gives
NaN (0 of 882 measured runs gave NaN). Where the fault was planted, it must look like the run's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, pstdev

WORDS = (
    "nan_at_start",
    "nan_abrupt",
    "nan_after_growth",
    "nan_isolated",
    "skipping",
    "diverged",
    "plateau",
    "stuck",
    "slow",
    "oscillating",
    "out_of_memory",
    "memory_grows",
    "tokens_slow_down",
)
_UNSTABLE = frozenset({"nan_at_start", "nan_abrupt", "nan_after_growth", "skipping", "diverged"})
_ALIKE = {
    "nan_at_start": {"nan_at_start"},
    "nan_abrupt": {"nan_abrupt"},
    "nan_after_growth": {"nan_after_growth", "diverged"},
    "nan_isolated": {"nan_isolated"},
    "skipping": {"skipping"},
    "diverged": {"diverged", "plateau"},
    "plateau": {"plateau", "stuck"},
    "stuck": {"stuck"},
    "slow": {"slow", "plateau"},
}

_LOOSELY = {
    "nan_at_start": _UNSTABLE,
    "nan_abrupt": _UNSTABLE,
    "nan_after_growth": _UNSTABLE | {"plateau"},
    "skipping": _UNSTABLE,
    "diverged": _UNSTABLE | {"plateau"},
    "plateau": {"plateau", "stuck", "diverged"},
    "oscillating": {"plateau", "slow", "diverged"},
}

LOST_GAP = 0.2
"""Share of the learnable gap lost from which a training counts as failed."""
MIN_SKIPS = 10
"""Consecutive skipped updates that make a collapse: a healthy scaler skips once or twice after a growth."""


def shown(
    losses: Sequence[float | None], *, lost_gap: float, chance: float, skipped: Sequence[int] = ()
) -> frozenset[str]:
    """Return the words for one training curve (None: a batch that was dropped)."""
    values = [loss for loss in losses if loss is not None]
    words: set[str] = set()
    if longest_run(skipped) >= MIN_SKIPS:
        words.add("skipping")
    bad = [index for index, loss in enumerate(values) if not math.isfinite(loss)]
    if bad:
        words.add(_kind_of_nan(values, bad, chance))
    elif lost_gap >= LOST_GAP and values:
        words.add(_kind_of_curve(values, chance))
    return frozenset(words)


def _kind_of_nan(values: Sequence[float], bad: Sequence[int], chance: float) -> str:
    if bad[0] <= 1:
        return "nan_at_start"
    if any(math.isfinite(loss) for loss in values[bad[0] :]) and len(bad) < len(values) / 4:
        return "nan_isolated"
    before = values[max(0, bad[0] - 20) : bad[0]]
    grown = max(before[-3:]) > max(2 * sorted(before)[len(before) // 2], 1.5 * chance)
    return "nan_after_growth" if grown else "nan_abrupt"


def _kind_of_curve(values: Sequence[float], chance: float) -> str:
    third = max(1, len(values) // 3)
    start = fmean(values[: max(1, third // 6)])
    middle, end = fmean(values[third - third // 4 : third + 1]), fmean(values[-max(1, third // 4) :])
    late = fmean(values[-third : -third + max(1, third // 4)])
    best = min(fmean(values[i : i + 5]) for i in range(max(1, len(values) - 5)))
    highest = max((fmean(values[i : i + 3]) for i in range(1, max(2, len(values) - 2))), default=start)
    gained = start - best
    steps = [after - before for before, after in pairwise(values[len(values) // 2 :])]
    noise = pstdev(steps) / math.sqrt(2) if len(steps) > 1 else 0.0
    if highest > start + max(0.1 * chance, 3 * noise) or (gained > 0.15 * chance and end > best + 0.5 * gained):
        return "diverged"
    if start - end < 0.05 * chance:
        return "stuck"
    early = (start - middle) / (start - end)
    return "plateau" if early > 0.6 and (late - end) / (start - end) < 0.15 else "slow"


def longest_run(flags: Sequence[int]) -> int:
    """Return the length of the longest run of true values."""
    longest = current = 0
    for flag in flags:
        current = current + 1 if flag else 0
        longest = max(longest, current)
    return longest


def reproduces(observed: Sequence[str], seen: frozenset[str], *, planted: bool) -> bool:
    """Whether what the control arm showed is what the run showed."""
    if not observed:
        return bool(seen)
    if planted:
        return any(seen & _ALIKE.get(word, {word}) for word in observed)
    return any(seen & _LOOSELY.get(word, {word}) for word in observed)

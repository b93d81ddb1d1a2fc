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
`overfits`          the loss on unseen data rises again while the training loss falls
`eval_worse_than_train`  the loss on unseen data stays far above the training loss without having risen
`suspiciously_low`  the training loss is lower than what can be learnt
`vanishing`         the gradient of the first layers is a tiny share of that of the last
`starts_high`       the first loss is more than 1.5 times that of a model that knows nothing (beside another word)
`norm_climbs`       the gradient norm climbs from the first steps on, to more than twice its size
`tiny_gradients`    gradient norms are nearly or exactly zero although nothing is learnt
`out_of_memory`     a device had no room for an allocation
`memory_grows`      device memory grew step after step
`tokens_slow_down`  generated tokens take longer the longer the text is
`waiting_for_data`  the device waits for input in a large part of each step
`many_syncs`        the host waits for the device many times a step
`many_launches`     a step consists of very many or very short kernels while the device idles
`recompiles`        a compiled function was compiled again and again
`pads`              most or much of what is computed is padding
`outputs_vary`      the same input gives different outputs
`repeats_itself`    generated text says the same over and over
`slow_generation`   an answer takes long although a token does not take longer and longer
`loses_quality`     a score fell against the original model or an earlier state of it
`eval_out_of_memory`  a device had no room in an evaluation

A control arm must show what the run showed. Where the run's own settings already fail on the twin, the failure is its
own and the kinds are compared loosely: fp32 Adam at a too high rate gives a plateau or a spike where a longer run gives
NaN (0 of 882 measured runs gave NaN). Where the fault was planted, it must look like the run's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median, pstdev
from typing import NamedTuple

STARTS_HIGH = "starts_high"
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
    "overfits",
    "eval_worse_than_train",
    "suspiciously_low",
    "vanishing",
    "tiny_gradients",
    "norm_climbs",
    STARTS_HIGH,
    "out_of_memory",
    "memory_grows",
    "tokens_slow_down",
    "waiting_for_data",
    "many_syncs",
    "many_launches",
    "recompiles",
    "pads",
    "outputs_vary",
    "repeats_itself",
    "slow_generation",
    "loses_quality",
    "eval_out_of_memory",
)
UNSTABLE = frozenset({"nan_at_start", "nan_abrupt", "nan_after_growth", "skipping", "diverged"})
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
    "nan_at_start": UNSTABLE,
    "nan_abrupt": UNSTABLE,
    "nan_after_growth": UNSTABLE | {"plateau"},
    "skipping": UNSTABLE,
    "diverged": UNSTABLE | {"plateau"},
    "plateau": {"plateau", "stuck", "diverged"},
    "oscillating": {"plateau", "slow", "diverged"},
}

LOST_GAP = 0.2
"""Share of the learnable gap lost from which a training counts as failed."""
MIN_SKIPS = 10
"""Consecutive skipped updates that make a collapse: a healthy scaler skips once or twice after a growth."""


FEWEST_LOOKS, RISES = 5, 1.05
"""Evaluations, and the last over the lowest, from which an unseen loss that rises again is overfitting."""
WORSE = 0.15
"""Distance between training and unseen loss, in units of chance, from which the unseen one is far above."""
SUSPICIOUS = 0.75
"""Training loss over the unseen loss of a good recipe below which it is lower than what can be learnt."""
CLIMB = 20
"""Points from the first one on in which a norm climbs, if it does; half of them are enough."""
AT_ONCE, CLIMBS, FALLS = 1.3, 2.5, 0.95
"""Second and last fifth of these over the first, and each over the one before. Gradients that are never cleared gave
1.9 and 2.6 or more (llama, gpt2, perceptron)."""
HIGH = 1.5
"""First loss over that of a model that knows nothing from which the weights were wrong before the first step."""
TINY = 1e-5
"""Median gradient norm that counts as nearly zero: 0.1 to 5 in trainings that learn."""
VANISHED = 1e-3
"""Gradient norm of the first matrix over that of the last in a plain network: 0.01 to 1 in trainings that learn, below
7e-4 with four sigmoid layers or more."""


class Evaluation(NamedTuple):
    """What was seen of a training beside its curve."""

    loss: float
    """On clean unseen data at the end."""
    best: float
    """The same of a known-good recipe."""
    watched: tuple[float, ...] = ()
    """On unseen data during training."""
    norms: tuple[float, ...] = ()
    """Gradient norm of each step."""
    layer_ratio: float | None = None
    """Gradient norm of the first matrix over that of the last."""


def shown(
    losses: Sequence[float | None],
    *,
    lost_gap: float,
    chance: float,
    skipped: Sequence[int] = (),
    evaluation: Evaluation | None = None,
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
        if evaluation is not None:
            words |= _beside_the_curve(values, chance, evaluation)
    # Where the loss never moved, gradients may add up because the optimizer holds none of the parameters.
    if evaluation is not None and lost_gap >= LOST_GAP and "stuck" not in words and climbs(evaluation.norms):
        words.add("norm_climbs")
    if words and values and math.isfinite(values[0]) and values[0] > HIGH * chance:
        words.add(STARTS_HIGH)
    return frozenset(words)


def _beside_the_curve(values: Sequence[float], chance: float, evaluation: Evaluation) -> set[str]:
    """What evaluation and gradients say about a training that lost something."""
    words = set()
    end = fmean(values[-max(1, len(values) // 4) :])
    seen = evaluation.watched
    lowest = min(seen, default=math.inf)
    rose = len(seen) >= FEWEST_LOOKS and seen[-1] >= RISES * lowest and lowest not in seen[-2:]
    if rose and end < fmean(values[: max(1, len(values) // 4)]):
        words.add("overfits")
    elif math.isfinite(evaluation.loss) and evaluation.loss - end >= WORSE * chance:
        words.add("eval_worse_than_train")
    if end < SUSPICIOUS * evaluation.best:
        words.add("suspiciously_low")
    if evaluation.norms and median(evaluation.norms) < TINY:
        words.add("tiny_gradients")
    if evaluation.layer_ratio is not None and evaluation.layer_ratio < VANISHED:
        words.add("vanishing")
    return words


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


def climbs(norms: Sequence[float]) -> bool:
    """Whether the gradient norm climbed from the first steps on, as gradients do that are never cleared and add up.

    A norm that jumps, that rises later on, or that was high at the start, does not.
    """
    end = next((index for index, norm in enumerate(norms) if not math.isfinite(norm)), len(norms))
    early = norms[: min(end, CLIMB)]
    if len(early) < CLIMB // 2:
        return False
    size = len(early) / 5
    fifths = [median(early[round(part * size) : round((part + 1) * size)]) for part in range(5)]
    steady = all(after >= FALLS * before for before, after in pairwise(fifths))
    return steady and fifths[1] >= AT_ONCE * fifths[0] and fifths[-1] >= CLIMBS * max(fifths[0], TINY)


def longest_run(flags: Sequence[int]) -> int:
    """Return the length of the longest run of true values."""
    longest = current = 0
    for flag in flags:
        current = current + 1 if flag else 0
        longest = max(longest, current)
    return longest


def reproduces(observed: Sequence[str], seen: frozenset[str], *, planted: bool) -> bool:
    """Whether what the control arm showed is what the run showed.

    A planted fault must also start as high as the run did: what breaks a training later on does not.
    """
    if planted and STARTS_HIGH in observed and STARTS_HIGH not in seen:
        return False
    observed = [word for word in observed if word != STARTS_HIGH]
    if not observed:
        return bool(seen)
    if planted:
        return any(seen & _ALIKE.get(word, {word}) for word in observed)
    return any(seen & _LOOSELY.get(word, {word}) for word in observed)

"""What the run says about its schedule, its loss and its evaluation: settings and symptoms for the twin's profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rca.experiments.loop_profile import Reader
from rca.experiments.symptoms import STARTS_HIGH, climbs
from rca.metric_series import MetricSeries

AT_PEAK, AT_RATE = 0.9, 0.9
"""Share of the peak, or of the rate at the failure, that counts as being there."""
EVAL_WORSE = 0.5
"""Validation loss over the training loss there, minus one, from which it is worse without having risen."""
ZERO_SHARE = 0.5
"""Share of the gradient norms that are exactly zero from which it is a symptom."""
_POWER = 64
"""Initial scales up to here are powers of two, as DeepSpeed writes them."""
_LARGEST_SCALE = 2.0**60
_NORM_EPS = ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "layernorm_epsilon", "norm_eps")


def of_training(read: Reader, step: int | None) -> dict[str, Any]:
    """Return the fields of the profile that only the twin needs; `step` is where the symptom began."""
    window, scale = read.whole("loss_scale_window"), read.positive("loss_scale_initial")
    if scale is not None:
        scale = 2.0**scale if scale <= _POWER else scale
    activation = read.text("hidden_act")
    index = read.number("ignore_index")
    return {
        **_schedule(read, step),
        "loss_scale_initial": scale if scale is not None and scale <= _LARGEST_SCALE else None,
        "loss_scale_window": window,
        "loss_reduction": _reduction(read),
        "ignore_index": int(index) if index is not None and abs(index) < 2**53 else None,
        "ignored_share": _ignored(read),
        "activation": activation[:40].lower() if activation else None,
        "norm_eps": next((value for value in map(read.positive, _NORM_EPS) if value is not None and value < 1), None),
    }


def symptoms_of_training(read: Reader) -> Iterator[str]:
    """Yield the words that evaluation and gradients give."""
    gap = read.fact_number("eval.gap")
    if read.fact("eval.overfit") is True:
        yield "overfits"
    elif read.fact("eval.train_learned") is True or (gap is not None and gap >= EVAL_WORSE):
        yield "eval_worse_than_train"
    if read.fact("loss.suspiciously_low") is True:
        yield "suspiciously_low"
    if read.fact("grad_norm.tiny") is True or (read.fact_number("grad_norm.zero_share") or 0.0) >= ZERO_SHARE:
        yield "tiny_gradients"
    norms = read.events.metric("grad_norm")
    moved = read.fact("loss.plateau") is not True
    if moved and norms is not None and climbs([float(norm) for norm in norms.value]):
        yield "norm_climbs"
    if read.fact("grad_norm.layers_vanish") is True:
        yield "vanishing"


def with_start(symptoms: Sequence[str], read: Reader) -> tuple[str, ...]:
    """Return the words, and how high the loss began where something went wrong at all."""
    high = bool(symptoms) and read.fact("loss.first_too_high") is True
    return (*symptoms, STARTS_HIGH) if high else tuple(symptoms)


def _schedule(read: Reader, step: int | None) -> dict[str, Any]:
    """Peak, warm-up, decay and the time at the rate of the failure, from the rates that were logged."""
    series = read.events.metric("learning_rate")
    if series is None:
        return {}
    position, rate = _usable(series)
    if len(rate) < 2 or rate.max() <= 0 or position[-1] <= position[0]:
        return {}
    peak, top = float(rate.max()), int(rate.argmax())
    length = float(position[-1] - position[0])
    found: dict[str, Any] = {"learning_rate_peak": peak}
    reached = int(np.argmax(rate >= AT_PEAK * peak))
    # A rate that began at its peak had no warm-up, whatever the distance between the logged steps is.
    found["lr_warmup_share"] = float((position[reached] - position[0]) / length) if reached else 0.0
    if rate[-1] < AT_PEAK * peak:
        found["lr_decay"] = float(max(rate[-1], 0.0) / peak)
        halved = np.flatnonzero(rate[top:] <= peak / 2)
        if len(halved):
            found["lr_half_share"] = float((position[top + halved[0]] - position[reached]) / length)
    if step is not None:
        before = position <= step
        if before.any():
            here = float(rate[before][-1])
            low = np.flatnonzero(rate[before] < AT_RATE * here)
            since = position[before][low[-1]] if len(low) else position[0]
            found["steps_at_rate"] = int(max(0, step - since))
    return found


def _usable(series: MetricSeries) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return steps and rates where both are numbers, in the order of the steps."""
    position = np.asarray(series.position, dtype=np.float64)
    rate = np.asarray(series.value, dtype=np.float64)
    fine = np.isfinite(position) & np.isfinite(rate)
    position, rate = position[fine], rate[fine]
    order = np.argsort(position, kind="stable")
    return position[order], rate[order]


def _reduction(read: Reader) -> str | None:
    for key in ("loss_reduction", "reduction", "criterion.reduction", "loss.reduction"):
        text = (read.text(key) or "").lower()
        if text in {"mean", "sum"}:
            return text
    return None


def _ignored(read: Reader) -> float | None:
    """Share of the labels that do not count; None where the run did not say."""
    share = read.fact_number("labels.ignored_share")
    return share if share is not None and 0 <= share <= 1 else None

"""The curves that the report shows, thinned so that spikes and gaps survive."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rca.diagnosis import Series
from rca.events import EventTable
from rca.metric_series import MetricSeries

POINTS = 500
"""Most points kept of one curve."""
WIDE = 30.0
"""Ratio of largest to smallest positive value from which a logarithmic axis reads better."""


class _Curve(NamedTuple):
    label: str
    unit: str
    phase: str = "train"


_CURVES = {
    "loss": _Curve("Training loss", ""),
    "eval_loss": _Curve("Validation loss", "", "eval"),
    "grad_norm": _Curve("Gradient norm", ""),
    "learning_rate": _Curve("Learning rate", ""),
    "loss_scale": _Curve("Loss scale", ""),
    "accuracy": _Curve("Training accuracy", ""),
    "eval_accuracy": _Curve("Validation accuracy", "", "eval"),
    "memory_allocated": _Curve("Memory allocated", "GiB"),
    "memory_reserved": _Curve("Memory reserved", "GiB"),
    "step_time": _Curve("Step time", "s"),
    "data_time": _Curve("Time waiting for data", "s"),
    "throughput": _Curve("Throughput", "per s"),
    "gpu_utilization": _Curve("GPU utilisation", "%"),
    "gpu_temperature": _Curve("GPU temperature", "°C"),
    "sm_clock": _Curve("SM clock", "MHz"),
}
_ON_LOG_AXIS = frozenset({"loss", "eval_loss", "grad_norm", "loss_scale"})


def curves(events: EventTable) -> tuple[Series, ...]:
    """Return the known curves of the run that have at least two points."""
    found = []
    for name, curve in _CURVES.items():
        series = events.metric(name)
        if series is not None and len(series) > 1:
            found.append(_series(series, curve, log_scale=name in _ON_LOG_AXIS))
    return tuple(found)


def _series(series: MetricSeries, curve: _Curve, *, log_scale: bool) -> Series:
    kept = thinned(series.position, series.value, points=POINTS)
    positive = series.value[np.isfinite(series.value) & (series.value > 0)]
    finite = series.value[np.isfinite(series.value)]
    wide = len(positive) > 1 and len(positive) == len(finite) and positive.max() / positive.min() > WIDE
    stepped = bool(len(series.step)) and bool(np.isfinite(series.step).all())
    return Series(
        name=series.name,
        label=curve.label,
        unit=series.unit or curve.unit,
        source=series.source,
        rank=series.rank,
        x_name="step" if stepped else "record",
        points=tuple((float(x), float(y)) for x, y in kept),
        log_scale=bool(log_scale and wide),
        phase=curve.phase,
    )


def thinned(x: np.ndarray, y: np.ndarray, *, points: int) -> list[tuple[float, float]]:
    """Keep per bucket the smallest, the largest and the first non-finite value, in their order."""
    if len(x) <= points:
        return list(zip(x.tolist(), y.tolist(), strict=True))
    kept: set[int] = {0, len(x) - 1}
    for bucket in np.array_split(np.arange(len(x)), max(1, points // 3)):
        values = y[bucket]
        finite = np.isfinite(values)
        if finite.any():
            inside = bucket[finite]
            kept.update((int(inside[values[finite].argmin()]), int(inside[values[finite].argmax()])))
        if not finite.all():
            kept.add(int(bucket[~finite][0]))
    order = sorted(kept)
    return [(float(x[index]), float(y[index])) for index in order]

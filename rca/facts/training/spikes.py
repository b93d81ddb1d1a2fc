"""Spikes and noise of the training loss."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number
from rca.facts.interface import Fact, FactFunction
from rca.facts.robust import running_median, spread, trailing_median
from rca.facts.training.curves import Curve, config_number
from rca.facts.training.divergence import diverged_from, loss_shape

if TYPE_CHECKING:
    import numpy.typing as npt

CATALOGUE: Mapping[str, str] = {
    "loss.spikes": "excursions of the loss with z > 8 and more than 1.5 times the trend before them",
    "loss.spike_recovered": "after the last spike the loss came back to within 20 % of its trend",
    "loss.spike_step": "step of the largest spike",
    "loss.spike_size": "largest spike over the trend before it (x)",
    "loss.oscillation": "standard deviation of the loss around its trend, over its level (robust)",
    "loss.swing": "95th over 5th percentile of the loss around its trend in the last three quarters of the run (x)",
    "loss.period_steps": "period of a repeating pattern in the loss (steps), when one explains most of its noise",
}

SPIKE_Z = 8.0
SPIKE_TREND = 1.5
"""A spike is z > 8 and above 1.5 times the trend (FACTS 4, runmedic)."""
TREND_WINDOW = 25
FEWEST_BEFORE = 12
"""Points before a divergence from which the noise is taken: the climb itself is none."""
MOST_POINTS = 20_000
"""A longer curve is thinned: a spike is as visible, and the time stays below a second."""


class Spike(NamedTuple):
    """One excursion of the loss above its trend."""

    peak: int
    """Index of its highest point."""
    start: int
    trend: float
    size: float
    """Height over trend."""
    recovered: bool


def find_spikes(line: Curve, *, progress: float, climb: int | None) -> list[Spike]:
    """Return the excursions, in order, up to a divergence and without the first five points of fast fall."""
    values = line.value
    trend = trailing_median(values, TREND_WINDOW)
    tall = (values > SPIKE_TREND * trend) & (values - trend > SPIKE_Z * _local_noise(values)) & (trend > 0)
    tall &= values - trend > 0.1 * progress
    if (values > 0).all():
        # Noise that multiplies has a long upper tail: a spike must stand out on both scales.
        tall &= np.log(values) - np.log(np.where(trend > 0, trend, 1.0)) > SPIKE_Z * _local_noise(np.log(values))
    found: list[Spike] = []
    index, behind = 5, len(values) if climb is None else max(climb - 3, 0)
    while index < behind:
        if not tall[index]:
            index += 1
            continue
        base = float(trend[index])
        back = np.flatnonzero(values[index:] <= base + 0.2 * abs(base))
        end = index + int(back[0]) if len(back) else len(values)
        top = index + int(np.argmax(values[index:end]))
        rest = values[end : end + TREND_WINDOW]
        recovered = len(rest) > 0 and float(np.median(rest)) <= 1.2 * base
        found.append(Spike(peak=top, start=index, trend=base, size=float(values[top]) / base, recovered=recovered))
        index = end
    return found


def _local_noise(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the noise around the trend in the hundred points before each block, at least 0.3 of that of the run."""
    residual = values - running_median(values, TREND_WINDOW)
    overall = spread(residual)
    blocks = range(0, len(values), TREND_WINDOW)
    before = [residual[max(0, block - 4 * TREND_WINDOW) : block] for block in blocks]
    local = [spread(part) if len(part) >= TREND_WINDOW else overall for part in before]
    return np.asarray(np.maximum(np.repeat(local, TREND_WINDOW)[: len(values)], 0.3 * overall))


def _peaks(line: Curve) -> tuple[Curve, int]:
    """Thin a very long curve to the highest point of every few, so that spikes survive; return it and how many."""
    size = math.ceil(len(line) / MOST_POINTS)
    if size <= 1:
        return line, 1
    blocks = np.arange(0, len(line), size)
    highest = [block + int(np.argmax(line.value[block : block + size])) for block in blocks]
    return line.pick(np.array(highest, dtype=np.int64)), size


def spikes(events: EventTable) -> Iterator[Fact]:
    """How often did the loss jump, and did it come back?"""
    shape = loss_shape(events)
    if shape is None or len(shape.curve) < 12:
        return
    line, size = _peaks(shape.curve)
    climb = diverged_from(shape)
    found = find_spikes(line, progress=shape.progress, climb=None if climb is None else climb // size)
    seen = line.event_id[[spike.peak for spike in found]] if found else line.event_id[:0]
    if not found:
        yield from emit("loss.spikes", 0, f"No spike among {len(shape.curve)} logged losses.")
        return
    largest = max(found, key=lambda spike: spike.size)
    place = line.place(largest.peak)
    count = "1 spike" if len(found) == 1 else f"{len(found)} spikes"
    says = (
        f"{count}; the largest reaches {number(float(line.value[largest.peak]))} at {place}, "
        f"{number(largest.size)} times the trend of {number(largest.trend)} before it."
    )
    yield from emit("loss.spikes", len(found), says, events=seen)
    yield from emit("loss.spike_size", largest.size, says, unit="x", events=seen)
    unit = "step" if line.step_at(largest.peak) is not None else "point"
    highest = line.event_id[[largest.peak]]
    yield from emit("loss.spike_step", line.position(largest.peak), says, unit=unit, events=highest)
    last = found[-1]
    outcome = "the loss came back" if last.recovered else "the loss did not come back"
    yield from emit(
        "loss.spike_recovered",
        last.recovered,
        f"After the spike at {line.place(last.peak)} {outcome} to its trend of {number(last.trend)}.",
        events=line.event_id[[last.peak, len(line) - 1]],
    )


def noise(events: EventTable) -> Iterator[Fact]:
    """How much does the loss jump around its trend?"""
    shape = loss_shape(events)
    if shape is None or len(shape.curve) < 12:
        return
    onset = diverged_from(shape)
    kept = len(shape.curve) if onset is None or onset < FEWEST_BEFORE else onset
    values = shape.curve.value[kept // 4 : kept]
    values = values[:: math.ceil(len(values) / MOST_POINTS)]
    trend = running_median(values, int(np.clip(len(values) // 5, 5, 101)))
    level = float(np.median(np.abs(trend)))
    if level == 0:
        return
    residual = values - trend
    limit = 8 * spread(residual) or float(np.max(np.abs(residual)))
    oscillation = float(np.std(np.clip(residual, -limit, limit))) / level
    seen = shape.curve.event_id[-3:]
    says = f"Around its trend the loss varies by {number(oscillation)} of its level ({number(level)})"
    batch = config_number(events, "batch_size")
    says += f" at a batch size of {number(batch)}." if batch is not None else "."
    yield from emit("loss.oscillation", oscillation, says, events=seen)
    positive = trend > 0
    if positive.all() and (values > 0).all():
        low, high = np.percentile(values / trend, [5, 95])
        swing = float(high / low)
        says = f"Nine of ten losses lie within a factor of {number(swing)} around the trend."
        yield from emit("loss.swing", swing, says, unit="x", events=seen)


def periodicity(events: EventTable) -> Iterator[Fact]:
    """Does the loss repeat itself, e.g. because the data comes in the same order every epoch?"""
    shape = loss_shape(events)
    if shape is None or len(shape.curve) < 40:
        return
    line = shape.curve
    values = line.value[len(line) // 5 :][-4000:]
    residual = values - running_median(values, max(5, len(values) // 3))
    limit = 5 * spread(residual)
    centred = np.clip(residual, -limit, limit)
    centred = centred - np.mean(centred)
    power = float(np.sum(centred**2))
    if power == 0:
        return
    size = len(centred)
    spectrum = np.fft.rfft(centred, 2 * size)
    correlation = np.fft.irfft(spectrum * np.conj(spectrum))[:size] / power
    correlation *= size / np.arange(size, 0, -1)
    lags = correlation[: size // 3]
    peaks = np.flatnonzero((lags[1:-1] > lags[:-2]) & (lags[1:-1] >= lags[2:])) + 1
    peaks = peaks[peaks >= 4]
    strong = peaks[lags[peaks] >= max(0.6, 0.9 * float(np.max(lags[peaks], initial=0.0)))]
    if not len(strong):
        return
    best = int(strong[0])
    dipped = float(np.min(lags[:best])) < 0.2
    if not dipped:
        return
    gaps = np.diff(line.step)
    gaps = gaps[np.isfinite(gaps) & (gaps > 0)]
    period = best * float(np.median(gaps)) if len(gaps) else float(best)
    yield from emit(
        "loss.period_steps",
        period,
        f"The loss repeats a pattern every {number(period)} steps (correlation {number(float(lags[best]))}).",
        unit="step",
        events=line.event_id[-2:],
    )


FACTS: tuple[FactFunction, ...] = (spikes, noise, periodicity)

"""NaN and Inf in the training loss: when, how often, whether they stay, and whether the logger hid them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rca.events import EventTable
from rca.facts.emit import emit, number, percent
from rca.facts.interface import Fact, FactFunction
from rca.facts.memo import once_per_table
from rca.facts.robust import runs
from rca.facts.training.curves import Curve, curve, curves

if TYPE_CHECKING:
    import numpy.typing as npt

CATALOGUE: Mapping[str, str] = {
    "loss.nan_step": "first step with a NaN or infinite training loss (also where the log shows 0.0 beside a NaN norm)",
    "loss.nan_share": "share of the logged training losses that are not finite",
    "loss.nan_iterations": "iterations with a non-finite loss, as counted by the training loop",
    "loss.nan_at_start": "one of the first two logged losses is not finite",
    "loss.nan_isolated": "non-finite losses are followed by finite ones and the run ends finite",
    "loss.nan_persists": "from some point on every logged loss is non-finite",
    "loss.nan_recurs": "non-finite losses come back at the same distance or at the same place of every epoch",
    "loss.nan_period": "steps between recurring non-finite losses",
    "loss.nan_rank": "rank whose loss is non-finite while another rank's loss is finite at that point",
    "loss.masked_nan": "loss logged as exactly 0.0 beside a NaN or zero gradient norm: a NaN that the logger replaced",
    "loss.masked_share": "share of the points that show a replaced NaN",
    "loss.zero_share": "share of the logged training losses that are exactly 0.0",
}

FAR_BELOW = 1e3
"""Times the usual loss, or 1 where that is less."""


class NonFinite(NamedTuple):
    """The non-finite points of one loss curve."""

    curve: Curve
    bad: npt.NDArray[np.bool_]
    masked: npt.NDArray[np.bool_]
    """Points whose 0.0 stands for a NaN; not all of them are proven non-finite."""
    norm: npt.NDArray[np.float64] | None
    """Gradient norm at each point; NaN also where there was none."""

    @property
    def first(self) -> int | None:
        """Index of the first non-finite point."""
        found = np.flatnonzero(self.bad)
        return int(found[0]) if len(found) else None

    @property
    def persists_from(self) -> int | None:
        """Index from which on everything is non-finite, or None when the curve ends finite."""
        if not len(self.bad) or not self.bad[-1]:
            return None
        return runs(self.bad)[-1][0]

    @property
    def sound(self) -> Curve:
        """The finite points before the loss broke down for good (all finite points when it did not).

        Values far below zero among positive ones are no level that a loss reached.
        """
        keep = ~self.bad & ~self.masked & self.curve.finite & ~far_below_zero(self.curve.value)
        if self.persists_from is not None:
            keep[self.persists_from :] = False
        return self.curve.pick(keep)


def far_below_zero(values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Mark values that lie a thousand times the median below zero, where the median is above it."""
    finite = values[np.isfinite(values)]
    usual = float(np.median(finite)) if len(finite) else 0.0
    return values < -FAR_BELOW * max(usual, 1.0) if usual > 0 else np.zeros(len(values), dtype=bool)


def beside(line: Curve, other: Curve | None) -> npt.NDArray[np.int64] | None:
    """Return for each point of `line` the index of the point of `other` at the same step, -1 where there is none."""
    if other is None:
        return None
    if np.isfinite(line.step).all() and np.isfinite(other.step).all():
        known = {step: index for index, step in enumerate(other.step)}
        return np.array([known.get(step, -1) for step in line.step], dtype=np.int64)
    return np.arange(len(line)) if len(line) == len(other) else None


def companion(events: EventTable, name: str, line: Curve) -> Curve | None:
    """Return another metric from the same source and rank, else from its most complete source."""
    same = [item for item in curves(events, name) if item.source == line.source and item.rank == line.rank]
    return same[0] if same else curve(events, name)


@once_per_table
def non_finite_loss(events: EventTable) -> NonFinite | None:
    """Return the training loss with its non-finite points marked, or None where no loss was logged."""
    found = [_mark(events, item) for item in curves(events, "loss")]
    if not found:
        return None
    main = max(found, key=lambda item: len(item.curve))
    if main.first is not None:
        return main
    return next((item for item in found if item.first is not None and len(item.curve) * 2 > len(main.curve)), main)


def _mark(events: EventTable, line: Curve) -> NonFinite:
    bad = ~line.finite
    zero = line.value == 0
    norm_curve = companion(events, "grad_norm", line)
    index = beside(line, norm_curve)
    masked = np.zeros(len(line), dtype=bool)
    norm = None
    ordinary = np.abs(line.value[~bad & ~zero])
    plausible = len(ordinary) == 0 or float(np.median(ordinary)) > 0.01
    if index is not None and norm_curve is not None:
        norm = np.where(index >= 0, norm_curve.value[index], np.nan)
        known = index >= 0
        masked = zero & known & (~np.isfinite(norm) | (norm == 0)) & plausible
        bad = bad | (masked & ~np.isfinite(norm))
    elif len(ordinary) and plausible:
        final = runs(zero)[-1] if zero.any() else (0, 0)
        if final[1] == len(line) and final[1] - final[0] >= 3:
            masked[final[0] :] = True
    return NonFinite(curve=line, bad=bad, masked=masked, norm=norm)


def occurrence(events: EventTable) -> Iterator[Fact]:
    """When the loss is not finite, how often, and whether it stays so."""
    yield from _counted(events)
    found = non_finite_loss(events)
    if found is None:
        return
    line, bad = found.curve, found.bad
    yield from emit(
        "loss.nan_share",
        float(np.mean(bad)),
        f"{int(bad.sum())} of {len(line)} logged losses are not finite.",
        events=line.event_id[bad],
    )
    yield from emit(
        "loss.zero_share",
        float(np.mean(line.value == 0)),
        f"{int(np.sum(line.value == 0))} of {len(line)} logged losses are exactly 0.0.",
        events=line.event_id[line.value == 0],
    )
    yield from _masked(found)
    first = found.first
    if first is None:
        yield from emit(
            "loss.nan_at_start", False, f"All {len(line)} logged losses are finite.", events=line.event_id[:1]
        )
        return
    seen = line.event_id[[first, *([first - 1] if first else [])]]
    shown = "NaN" if np.isnan(line.value[first]) else number(float(line.value[first]))
    place = line.place(first) + line.where()
    hidden = " beside a NaN gradient norm" if line.value[first] == 0 else ""
    yield from emit(
        "loss.nan_step",
        line.position(first),
        f"The loss is {shown}{hidden} at {place}.",
        unit="step" if line.step_at(first) is not None else "point",
        events=seen,
    )
    at_start = bool(bad[:2].any())
    yield from emit(
        "loss.nan_at_start",
        at_start,
        f"The first non-finite loss is point {first + 1} of the log.",
        events=seen,
    )
    after = bad[first:]
    isolated = bool(~bad[-1] and np.mean(after) < 0.5)
    lengths = [end - start for start, end in runs(bad)]
    yield from emit(
        "loss.nan_isolated",
        isolated,
        f"After {place} {percent(float(np.mean(after)))} of the losses are non-finite, in {len(lengths)} stretches.",
        events=line.event_id[bad],
    )
    persists = found.persists_from
    yield from emit(
        "loss.nan_persists",
        persists is not None and len(line) - persists >= min(2, len(line)),
        f"The loss {'stays non-finite to' if persists is not None else 'is finite again before'} the end of the log.",
        events=line.event_id[[first, len(line) - 1]],
    )


def _counted(events: EventTable) -> Iterator[Fact]:
    """Count what Megatron counts: iterations whose loss was not finite, between two log lines."""
    line = curve(events, "nan_steps")
    if line is None or not line.finite.any():
        return
    good = line.pick(line.finite)
    total = float(np.max(good.value)) if bool(np.all(np.diff(good.value) >= 0)) else float(np.sum(good.value))
    says = f"The training loop counted {number(total)} iterations with a non-finite loss."
    yield from emit("loss.nan_iterations", int(min(total, 1e9)), says, events=good.event_id[good.value > 0])


def _masked(found: NonFinite) -> Iterator[Fact]:
    line, masked = found.curve, found.masked
    if found.norm is None and not masked.any():
        return
    count = int(masked.sum())
    beside_what = "no gradient norm was logged beside them" if found.norm is None else "the gradient norm is NaN or 0"
    says = f"{count} losses are logged as exactly 0.0 and {beside_what}" if count else "No loss is logged as a bare 0.0"
    place = f", first at {line.place(int(np.flatnonzero(masked)[0]))}." if count else "."
    yield from emit("loss.masked_nan", count > 0, says + place, events=line.event_id[masked])
    yield from emit("loss.masked_share", count / len(line), says + place, events=line.event_id[masked])


def recurrence(events: EventTable) -> Iterator[Fact]:
    """Whether non-finite losses come back at regular distances: then the data is the suspect, not the optimiser."""
    found = non_finite_loss(events)
    if found is None or found.first is None or found.persists_from is not None:
        return
    line = found.curve
    starts = np.array([start for start, _ in runs(found.bad)], dtype=np.int64)
    if len(starts) < 2:
        says = "The loss was non-finite in one place only."
        yield from emit("loss.nan_recurs", False, says, events=line.event_id[starts])
        return
    steps = line.step[starts] if np.isfinite(line.step[starts]).all() else starts.astype(float)
    gaps = np.diff(steps)
    regular = len(gaps) >= 2 and float(np.min(gaps)) > 0 and float(np.ptp(gaps)) <= 0.05 * float(np.median(gaps))
    epoch_curve = companion(events, "epoch", line)
    index = beside(line, epoch_curve)
    same_place = False
    if index is not None and epoch_curve is not None and (index[starts] >= 0).all():
        epochs = epoch_curve.value[index[starts]]
        turns = np.exp(2j * np.pi * epochs)
        fractional = bool(np.any(np.abs(epoch_curve.value - np.round(epoch_curve.value)) > 1e-6))
        same_place = fractional and float(np.ptp(epochs)) >= 0.9 and abs(complex(np.mean(turns))) > 0.995
    period = float(np.median(gaps))
    spacing = ", ".join(number(float(gap)) for gap in gaps[:5])
    yield from emit(
        "loss.nan_recurs",
        bool(regular or same_place),
        f"The loss was non-finite in {len(starts)} places, {spacing} steps apart"
        + (" and at the same place of each epoch." if same_place else "."),
        events=line.event_id[starts],
    )
    if regular or same_place:
        yield from emit(
            "loss.nan_period",
            period,
            f"Non-finite losses return every {number(period)} steps.",
            unit="step",
            events=line.event_id[starts],
        )


def by_rank(events: EventTable) -> Iterator[Fact]:
    """Which rank's loss broke first, where several ranks log one."""
    found = [_mark(events, item) for item in curves(events, "loss") if item.rank is not None]
    broken = [(item.curve.position(item.first), item) for item in found if item.first is not None]
    if len(found) < 2 or not broken:
        return
    broken.sort(key=lambda pair: pair[0])
    step, first = broken[0]
    others = [item for item in found if item.curve.rank != first.curve.rank]
    if any(position <= step for position, item in broken[1:] if item.curve.rank != first.curve.rank):
        return
    yield from emit(
        "loss.nan_rank",
        first.curve.rank,
        f"Rank {first.curve.rank} logs a non-finite loss at step {step}; the other {len(others)} ranks do not.",
        events=first.curve.event_id[[first.first or 0]],
    )


FACTS: tuple[FactFunction, ...] = (occurrence, recurrence, by_rank)

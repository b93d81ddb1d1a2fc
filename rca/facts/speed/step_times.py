"""How long each step took: as logged, else as the times of successive metric lines tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rca.events import EventTable
from rca.facts.failure.progress import DEVICE_METRICS
from rca.facts.memo import once_per_table
from rca.facts.training.curves import curves

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

MIN_POINTS = 3
_DAY = 86_400.0


@dataclass(frozen=True, eq=False)
class StepTimes:
    """Seconds a step, point by point."""

    origin: str
    """`logged`, `timestamps` or `trace`."""
    source: str
    rank: int | None
    step: Floats
    """Step at which the point was logged; its index where the log gave none."""
    seconds: Floats
    """Seconds a step, averaged since the point before where not every step is logged."""
    steps: Floats
    """Number of steps that the point stands for."""
    event_id: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def told(self) -> str:
        """Say where the times come from, for a sentence."""
        return {
            "logged": "as logged",
            "timestamps": "from the times of successive lines",
            "trace": "from the profiler trace",
        }[self.origin]


@once_per_table
def step_times(events: EventTable) -> StepTimes | None:
    """Return the step times of the most complete source, or None where nothing tells them."""
    return _logged(events) or _from_times(events) or _from_trace(events)


def _logged(events: EventTable) -> StepTimes | None:
    found = []
    for item in curves(events, "step_time"):
        seconds = item.value / 1000 if item.unit == "ms" else item.value
        good = np.isfinite(seconds) & (seconds > 0) & (seconds < _DAY)
        if np.count_nonzero(good) >= MIN_POINTS:
            step = item.step if np.isfinite(item.step).all() else np.arange(len(item), dtype=float)
            ahead = np.diff(step, prepend=step[0] - 1)
            many = np.where(ahead > 0, ahead, 1.0)
            found.append(
                StepTimes("logged", item.source, item.rank, step[good], seconds[good], many[good], item.event_id[good])
            )
    return max(found, key=len) if found else None


def _from_trace(events: EventTable) -> StepTimes | None:
    found = [
        StepTimes(
            "trace",
            series.source,
            series.rank,
            series.step,
            series.value / 1e6,
            np.ones(len(series)),
            series.event_id,
        )
        for series in events.all_metrics("trace.step_us")
        if np.isfinite(series.step).all() and len(series) >= MIN_POINTS and (series.value > 0).all()
    ]
    return max(found, key=len) if found else None


def _from_times(events: EventTable) -> StepTimes | None:
    """Take the metric with the most rows that have a time and a step, and the distances between them."""
    table = events.table
    name = table["name"].cast(pa.string())
    wanted = pc.and_(pc.equal(table["kind"].cast(pa.string()), "metric"), pc.is_valid(table["time"]))
    wanted = pc.and_(wanted, pc.is_valid(table["step"]))
    wanted = pc.and_(wanted, pc.invert(pc.is_in(name, value_set=pa.array(sorted(DEVICE_METRICS)))))
    wanted = pc.and_(wanted, pc.invert(pc.or_(pc.starts_with(name, "trace."), pc.starts_with(name, "eval"))))
    rows = table.filter(wanted)
    if rows.num_rows < MIN_POINTS + 1:
        return None
    keys = list(
        zip(
            rows["source"].cast(pa.string()).to_pylist(),
            rows["rank"].to_pylist(),
            rows["name"].cast(pa.string()).to_pylist(),
            strict=True,
        )
    )
    counts: dict[tuple[str, int | None, str], int] = {}
    for key in keys:
        counts[key] = counts.get(key, 0) + 1
    best = max(counts, key=lambda key: counts[key])
    picked = np.flatnonzero([key == best for key in keys])
    picked = picked[np.argsort(rows["line"].fill_null(0).to_numpy()[picked], kind="stable")]
    time = rows["time"].cast(pa.int64()).to_numpy()[picked] / 1e6
    step = rows["step"].to_numpy()[picked].astype(float)
    ids = rows["event_id"].to_numpy()[picked]
    ahead, elapsed = np.diff(step), np.diff(time)
    good = (ahead > 0) & (elapsed >= 0) & (elapsed < _DAY)
    if np.count_nonzero(good) < MIN_POINTS or not elapsed[good].any():
        return None
    seconds = elapsed[good] / ahead[good]
    return StepTimes("timestamps", best[0], best[1], step[1:][good], seconds, ahead[good], ids[1:][good])

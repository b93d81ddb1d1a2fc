"""Event files of one folder that continue each other: one curve a metric, as a job that was resumed trained it.

A writer opens a new file whenever the job starts. Where the second start went on from a checkpoint and came at least as
far as the first, its points replace those of the first from there on; other files stay curves of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from rca.metric_series import MetricSeries

_EVENT_FILE = "tfevents"


def continued(series: Sequence[MetricSeries]) -> tuple[MetricSeries, ...]:
    """Join the series that continue each other; the others come back as they are."""
    folders: dict[tuple[str, int | None], list[MetricSeries]] = defaultdict(list)
    found: list[MetricSeries] = []
    for item in series:
        folder, _, name = item.source.rpartition("/")
        if _EVENT_FILE in name and len(item) and np.isfinite(item.step).all():
            folders[folder, item.rank].append(item)
        else:
            found.append(item)
    for items in folders.values():
        joined: list[MetricSeries] = []
        for item in sorted(items, key=lambda one: int(one.event_id[0])):
            if joined and _continues(joined[-1], item):
                joined[-1] = _joined(joined[-1], item)
            else:
                joined.append(item)
        found += joined
    return tuple(found)


def follows(earlier: MetricSeries, later: MetricSeries) -> bool:
    """Say whether all points of one series were written before those of another, in files of one folder."""
    places = [item.source.rpartition("/") for item in (earlier, later)]
    beside = places[0][0] == places[1][0] and all(_EVENT_FILE in name for _, _, name in places)
    return beside and earlier.rank == later.rank and int(earlier.event_id.max()) < int(later.event_id.min())


def _continues(earlier: MetricSeries, later: MetricSeries) -> bool:
    if not follows(earlier, later):
        return False
    return bool(later.step[0] > earlier.step[0] and later.step.max() >= earlier.step.max())


def _joined(earlier: MetricSeries, later: MetricSeries) -> MetricSeries:
    kept = earlier.step < later.step.min()
    return MetricSeries(
        name=later.name,
        source=later.source,
        rank=later.rank,
        unit=later.unit,
        step=np.concatenate((earlier.step[kept], later.step)),
        value=np.concatenate((earlier.value[kept], later.value)),
        event_id=np.concatenate((earlier.event_id[kept], later.event_id)),
    )

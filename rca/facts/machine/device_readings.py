"""Readings of one quantity, device by device: series that monitors wrote, and snapshots where there is no series."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rca.events import Event, EventTable

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

_IN_SNAPSHOTS = {
    "gpu_utilization": "utilization",
    "gpu_temperature": "temperature",
    "power": "power_w",
    "power_limit": "power_limit_w",
    "sm_clock": "sm_clock_mhz",
    "sm_clock_max": "sm_clock_max_mhz",
}
"""How a snapshot of a device (`system.gpu`) calls a quantity, where it is not the name of the series."""
_Owner = tuple[str, int, str, str]


@dataclass(frozen=True, eq=False)
class Readings:
    """One quantity of one device, in the order it was read."""

    device: str
    """Host and index, as far as they were told."""
    value: Floats
    time: Floats
    """Microseconds since the epoch; NaN where unknown."""
    event_id: npt.NDArray[np.int64]

    @property
    def named(self) -> str:
        """The device in words: `GPU 1 of node17`, `the GPU of rank 3`."""
        host, _, index = self.device.rpartition(" ")
        if "of rank" in self.device:
            return f"the GPU {self.device.strip()}"
        return f"GPU {index}" + (f" of {host}" if host else "")


def readings(events: EventTable, name: str) -> list[Readings]:
    """Return the readings of a quantity by device (source, rank, host and index of the device)."""
    series = _of_series(events, name)
    told = {owner[0] for owner, _item in series}
    series += [item for item in _of_snapshots(events, name) if item[0][0] not in told]
    return [item for _owner, item in sorted(series, key=lambda pair: pair[0])]


def _of_series(events: EventTable, name: str) -> list[tuple[_Owner, Readings]]:
    table = events.table
    mask = pc.and_(pc.equal(table["kind"].cast(pa.string()), "metric"), pc.equal(table["name"].cast(pa.string()), name))
    rows = table.filter(mask)
    if rows.num_rows == 0:
        return []
    value = rows["value"].fill_null(np.nan).to_numpy()
    time = rows["time"].cast(pa.int64()).cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy()
    line = rows["line"].fill_null(0).to_numpy()
    ids = rows["event_id"].to_numpy()
    places: dict[_Owner, list[int]] = {}
    owners = zip(
        rows["source"].cast(pa.string()).to_pylist(),
        rows["rank"].fill_null(-1).to_pylist(),
        rows["host"].cast(pa.string()).to_pylist(),
        rows["attrs"].to_pylist(),
        strict=True,
    )
    for place, (source, rank, host, attrs) in enumerate(owners):
        places.setdefault((source or "", rank, host or "", _device(attrs)), []).append(place)
    found = []
    for owner, listed in places.items():
        where = np.array(listed)
        where = where[np.argsort(line[where], kind="stable")]
        where = where[np.isfinite(value[where])]
        if len(where):
            found.append((owner, Readings(_label(owner), value[where], time[where], ids[where])))
    return found


def _of_snapshots(events: EventTable, name: str) -> list[tuple[_Owner, Readings]]:
    key = _IN_SNAPSHOTS.get(name, name)
    places: dict[_Owner, list[Event]] = {}
    for event in events.named("system.gpu", kind="system"):
        value = event.attr(key)
        if isinstance(value, (int, float)) and np.isfinite(value):
            index = event.attr("index")
            rank = -1 if event.rank is None else event.rank
            owner = (event.source, rank, event.host or "", "" if index is None else str(index))
            places.setdefault(owner, []).append(event)
    return [
        (
            owner,
            Readings(
                _label(owner),
                np.array([float(event.attr(key)) for event in listed]),
                np.array([np.nan if event.time is None else float(event.time) for event in listed]),
                np.array([event.event_id for event in listed], dtype=np.int64),
            ),
        )
        for owner, listed in places.items()
    ]


def _label(owner: _Owner) -> str:
    _source, rank, host, index = owner
    label = index or (f"of rank {rank}" if rank >= 0 else "0")
    return f"{host} {label}".strip()


@lru_cache(maxsize=4096)
def _device(attrs: str | None) -> str:
    if not attrs:
        return ""
    told = json.loads(attrs)
    return str(told.get("gpu", told.get("index", "")))

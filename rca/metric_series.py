"""Metrics of the event table as series: one per source, rank and device, the parts of a rotated log joined."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from rca.rotation import Part, parts_of

if TYPE_CHECKING:
    import numpy.typing as npt


class MetricSeries(NamedTuple):
    """One metric as one source, rank and device reported it, in the order it was reported."""

    name: str
    source: str
    rank: int | None
    step: npt.NDArray[np.float64]
    """Optimizer steps; NaN where the source gave none."""
    value: npt.NDArray[np.float64]
    event_id: npt.NDArray[np.int64]
    unit: str
    device: str = ""
    """Index or uuid of the device that was read, with its host where that was told; empty for all other metrics."""

    def __len__(self) -> int:
        return len(self.value)

    @property
    def position(self) -> npt.NDArray[np.float64]:
        """Steps where all are known, else the index of the point."""
        return self.step if len(self.step) and np.isfinite(self.step).all() else np.arange(len(self.value), dtype=float)


def series_of(table: pa.Table) -> Mapping[str, tuple[MetricSeries, ...]]:
    """Return the series of every metric in a table of events with their ids, by the name of the metric."""
    import pyarrow.compute as pc

    metrics = table.filter(pc.equal(table["kind"].cast(pa.string()), "metric"))
    if metrics.num_rows == 0:
        return {}
    name = np.asarray(metrics["name"].cast(pa.string()).to_pylist(), dtype=object)
    source = np.asarray(metrics["source"].cast(pa.string()).to_pylist(), dtype=object)
    rank = metrics["rank"].fill_null(-1).to_numpy()
    step = metrics["step"].cast(pa.float64()).to_numpy(zero_copy_only=False)
    value = metrics["value"].to_numpy(zero_copy_only=False)
    event_id = metrics["event_id"].to_numpy()
    units = metrics["unit"].cast(pa.string()).to_pylist()
    line = metrics["line"].fill_null(0).to_numpy()
    device = _devices(metrics)
    groups: dict[tuple[str, str, int, str], list[int]] = {}
    for index, key in enumerate(zip(name, source, rank, device, strict=True)):
        groups.setdefault(key, []).append(index)
    found: dict[str, list[MetricSeries]] = {}
    for (metric, origin, owner, read), rows in sorted(groups.items()):
        picked = np.asarray(rows)
        order = picked[np.argsort(line[picked], kind="stable")]
        series = MetricSeries(
            name=metric,
            source=origin,
            rank=None if owner < 0 else int(owner),
            step=step[order],
            value=value[order],
            event_id=event_id[order],
            unit=units[order[0]] or "",
            device=read,
        )
        found.setdefault(metric, []).append(series)
    parts = parts_of(sorted({item.source for items in found.values() for item in items}))
    times = _times(table) if parts else None
    return {
        metric: tuple(items if times is None else _rejoined(items, parts, times)) for metric, items in found.items()
    }


def _times(table: pa.Table) -> npt.NDArray[np.int64]:
    """Microseconds of every row; the smallest number where there is none."""
    return np.asarray(table["time"].cast(pa.int64()).fill_null(np.iinfo(np.int64).min).to_numpy())


def _devices(metrics: pa.Table) -> Sequence[str]:
    """Return the device and its host that each row is a reading of; empty for what is no reading of a device."""
    import pyarrow.compute as pc

    attrs = metrics["attrs"]
    if not pc.any(pc.match_substring(attrs, '"gpu": ')).as_py():
        return [""] * int(metrics.num_rows)
    coded = pc.dictionary_encode(attrs).combine_chunks()
    told = [_device(text) for text in coded.dictionary.to_pylist()]
    codes = coded.indices.to_pylist()
    hosts = metrics["host"].cast(pa.string()).to_pylist()
    found = ("" if code is None else told[code] for code in codes)
    return [f"{host} {read}" if read and host else read for read, host in zip(found, hosts, strict=True)]


def _device(attrs: str) -> str:
    read = json.loads(attrs).get("gpu") if '"gpu": ' in attrs else None
    return "" if read is None else str(read)


def _rejoined(
    items: Sequence[MetricSeries], parts: Mapping[str, Part], times: npt.NDArray[np.int64]
) -> Iterator[MetricSeries]:
    """Yield the series with those of the parts of one rotated log joined, in the order in which it was written."""
    families: dict[tuple[str, int | None], list[MetricSeries]] = {}
    for item in items:
        part = parts.get(item.source)
        if part is None:
            yield item
        else:
            families.setdefault((part.log, item.rank), []).append(item)
    for members in families.values():
        members.sort(key=lambda item: parts[item.source].order)
        if all(len(item) and times[item.event_id[0]] > 0 for item in members):
            members.sort(key=lambda item: int(times[item.event_id[0]]))
        certain = parts[members[0].source].certain
        joined = members[0]
        for item in members[1:]:
            if not _follows(joined, item, times, certain=certain):
                yield joined
                joined = item
                continue
            joined = MetricSeries(
                name=item.name,
                source=item.source,
                rank=item.rank,
                step=np.concatenate([joined.step, item.step]),
                value=np.concatenate([joined.value, item.value]),
                event_id=np.concatenate([joined.event_id, item.event_id]),
                unit=item.unit,
            )
        yield joined


def _follows(first: MetricSeries, second: MetricSeries, times: npt.NDArray[np.int64], *, certain: bool) -> bool:
    """Say whether a part begins where the one before it ends: by its times, and by its steps where names say little."""
    ends, begins = times[first.event_id[-1]], times[second.event_id[0]]
    if ends > 0 and begins > 0 and begins < ends:
        return False
    return certain or bool(second.step[0] >= first.step[-1])

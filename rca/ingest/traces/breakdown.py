"""Where the time of each step went, and the counts that tell why: computed from kernel names and annotations.

Shares come from the events inside the step windows, never from labels of the profiler: NCCL kernels are told by their
names and DataLoader waits by their annotation, which torch-tb-profiler misses in traces of torch 2 and later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rca.ingest.traces.columns import Columns
from rca.ingest.traces.intervals import Intervals, covered, joined, union
from rca.ingest.traces.names import DEVICE, PARTS, Role
from rca.ingest.traces.steps import Windows
from rca.ingest.traces.waits import waits

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Mask = npt.NDArray[np.bool_]

GIB = 1024.0**3


class Column(NamedTuple):
    """One number a step."""

    unit: str
    values: Floats


def breakdown(columns: Columns, windows: Windows) -> dict[str, Column]:
    """Return one column for each figure, one value a step; figures of devices only where devices did something.

    `<part>_us` add up to `step_us`. Times in microseconds, sizes in GiB, the rest are counts a step.
    """
    if not len(windows):
        return {}
    device = bool(columns.on_device.any())
    found = {"step_us": Column("us", windows.duration)}
    found |= _parts(columns, windows, device=device)
    found |= _calls(columns, windows)
    if device:
        found |= _device(columns, windows)
    return found | _memory(columns, windows)


def _of_role(columns: Columns, *roles: Role) -> Intervals:
    where = np.isin(columns.role, roles)
    return union(columns.start[where], columns.end[where])


def _parts(columns: Columns, windows: Windows, *, device: bool) -> dict[str, Column]:
    """Give each role what no role before it has: the growth of the union, role by role."""
    found: dict[str, Column] = {}
    taken = Intervals(np.empty(0), np.empty(0))
    before = np.zeros(len(windows))
    for role in PARTS:
        if not device and (role in DEVICE or (role is Role.RUNTIME and not (columns.role == role).any())):
            continue
        if role is Role.DATALOADER and not (columns.role == role).any():
            continue  # A loop that feeds itself leaves no such annotation: that is no data, not a share of zero.
        taken = joined(taken, _of_role(columns, role))
        now = covered(taken, windows.start, windows.end)
        found[f"{role.name.lower()}_us"] = Column("us", np.maximum(now - before, 0))
        before = now
    found["other_us"] = Column("us", np.maximum(windows.duration - before, 0))
    return found


def _count(columns: Columns, windows: Windows, where: Mask, *, host: bool = False) -> Floats:
    index = windows.of(columns.start[where], host=host)
    return np.bincount(index[index >= 0], minlength=len(windows)).astype(np.float64)


def _sum(columns: Columns, windows: Windows, where: Mask) -> Floats:
    index = windows.of(columns.start[where])
    inside = index >= 0
    weights = columns.duration[where][inside]
    return np.bincount(index[inside], weights=weights, minlength=len(windows)).astype(np.float64)


def _calls(columns: Columns, windows: Windows) -> dict[str, Column]:
    """Count what the host did in the host part of each step."""

    def count(flag: str) -> Column:
        return Column("", _count(columns, windows, columns.has(flag), host=True))

    found = {"items": count("item")} if (columns.role == Role.CPU).any() else {}
    compiling = columns.has("compiling")
    if compiling.any():
        spans = union(columns.start[compiling], columns.end[compiling])
        found["compile_us"] = Column("us", covered(spans, windows.host_start, windows.host_end))
        found["compilations"] = count("compilation")
    if (columns.role == Role.RUNTIME).any():
        sync = columns.has("sync")
        waits = union(columns.start[sync], columns.end[sync])
        found |= {"launches": count("launch"), "graph_launches": count("graph"), "syncs": count("sync")}
        found["sync_us"] = Column("us", covered(waits, windows.host_start, windows.host_end))
    return found


def _device(columns: Columns, windows: Windows) -> dict[str, Column]:
    """Sum what the devices did."""
    kernel = columns.role == Role.KERNEL
    collective = (columns.role == Role.COMMUNICATION) & columns.on_device
    compute = union(columns.start[kernel], columns.end[kernel])
    exchange = union(columns.start[collective], columns.end[collective])
    busy = union(columns.start[columns.on_device], columns.end[columns.on_device])
    hidden = covered(compute, windows.start, windows.end)
    both = covered(joined(compute, exchange), windows.start, windows.end)
    found = {
        "busy_us": Column("us", covered(busy, windows.start, windows.end)),
        "collective_us": Column("us", covered(exchange, windows.start, windows.end)),
        "exposed_collective_us": Column("us", np.maximum(both - hidden, 0)),
        "kernels": Column("", _count(columns, windows, kernel)),
        "kernel_sum_us": Column("us", _sum(columns, windows, kernel)),
        "matmul_sum_us": Column("us", _sum(columns, windows, columns.has("matmul"))),
        "tensor_core_sum_us": Column("us", _sum(columns, windows, columns.has("tensor_core"))),
        "copies_to_host": Column("", _count(columns, windows, columns.has("to_host"))),
        "copies_to_host_us": Column("us", _sum(columns, windows, columns.has("to_host"))),
        "copies_to_device_us": Column("us", _sum(columns, windows, columns.has("to_device"))),
    }
    return found | {name: Column("us", values) for name, values in waits(columns, windows).items()}


def _memory(columns: Columns, windows: Windows) -> dict[str, Column]:
    """Read the allocator's total at the end of each step and its highest in it: of the device, else of the host.

    Of several devices the one that held most counts.
    """
    memory = columns.memory
    found: dict[str, Column] = {}
    for prefix, where in (("memory", memory.device_type > 0), ("host_memory", memory.device_type == 0)):
        if not (where & (memory.allocated >= 0)).any():
            continue
        fullest = memory.device_id[where][np.argmax(memory.allocated[where])]
        where_fullest = where & (memory.device_id == fullest)
        for name, values in (("allocated", memory.allocated), ("reserved", memory.reserved)):
            known = where_fullest & (values >= 0)
            if not known.any() or (prefix == "host_memory" and name == "reserved"):
                continue
            time, held = memory.time[known], values[known]
            place = np.searchsorted(time, windows.end, side="right") - 1
            at_end = np.where(place >= 0, held[np.maximum(place, 0)], np.nan)
            found[f"{prefix}_{name}"] = Column("GiB", at_end / GIB)
            found[f"{prefix}_peak_{name}"] = Column("GiB", _highest(time, held, windows) / GIB)
    return found


def _highest(time: Floats, held: Floats, windows: Windows) -> Floats:
    """Return the highest value in each window, what it began with counted; NaN before the first value."""
    first = np.maximum(np.searchsorted(time, windows.start, side="right") - 1, 0)
    last = np.searchsorted(time, windows.end, side="right")
    return np.array([held[low:high].max() if high > low else np.nan for low, high in zip(first, last, strict=True)])

"""Why the devices stood idle between two pieces of work, and how long launches waited for their turn.

The kinds of gaps are those of HolisticTraceAnalysis (breakdown_analysis.get_idle_time_breakdown), taken over all
streams: if the work behind a gap was launched after the gap began, the device waited for the host; else it waited for
the launch to arrive, or for other streams, copies and collectives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rca.ingest.traces.columns import Columns
from rca.ingest.traces.intervals import union
from rca.ingest.traces.steps import Windows, launches

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


def waits(columns: Columns, windows: Windows) -> dict[str, Floats]:
    """Return per step: `host_wait_us`, idle time for want of a launch, and `launch_delay_us`, the median launch's wait.

    Empty where launches are not linked to what they started.
    """
    calls, device = launches(columns)
    if not len(calls):
        return {}
    busy = union(columns.start[columns.on_device], columns.end[columns.on_device])
    gap_start = np.concatenate((windows.start[:1], busy.end[:-1]))
    gap_end = busy.start
    # The work that ends a gap is the first one that starts there; two at once were launched one after the other.
    order = np.argsort(columns.start[device], kind="stable")
    begins, launched = columns.start[device][order], columns.start[calls][order]
    first = np.minimum(np.searchsorted(begins, gap_end), len(begins) - 1)
    late = (begins[first] == gap_end) & (launched[first] > gap_start)
    step = windows.of(gap_end)
    known = late & (step >= 0)
    from_start = np.maximum(gap_start[known], windows.start[step[known]])
    # Until the launch has begun the device waits for the host; the launch itself belongs to it as well.
    length = np.maximum(gap_end[known] - from_start, 0)
    waited = np.bincount(step[known], weights=length, minlength=len(windows)).astype(np.float64)
    return {"host_wait_us": waited, "launch_delay_us": _delays(columns, windows, calls, device)}


def _delays(columns: Columns, windows: Windows, calls: npt.NDArray[np.int64], device: npt.NDArray[np.int64]) -> Floats:
    """Return the median time from the end of a launch to the begin of its work, step by step; NaN where none was."""
    step = windows.of(columns.start[calls], host=True)
    delay = np.maximum(columns.start[device] - columns.end[calls], 0)
    order = np.lexsort((delay, step))
    step, delay = step[order], delay[order]
    low = np.searchsorted(step, np.arange(len(windows)))
    high = np.searchsorted(step, np.arange(len(windows)), side="right")
    middle = np.minimum((low + high) // 2, max(len(delay) - 1, 0))
    return np.where(high > low, delay[middle], np.nan)

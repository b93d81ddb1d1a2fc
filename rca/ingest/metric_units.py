"""Units of metrics read off their names, so that one metric means one unit in the event table."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rca.ingest.names import METRIC_NAMES, canonical_metric

_SUFFIX = re.compile(
    r"^(?P<stem>.*?)(?:[\s_.\-/]+[\[(]?|[\[(])(?P<unit>gib|gb|mib|mb|kib|kb|bytes|ms|us|seconds|secs?|s|pct|percent|%|mhz|w|c)[\])]?$"
)
_TIME = {"ms": 1e-3, "us": 1e-6}
_MEMORY = {
    "gib": 1.0,
    "gb": 1.0,
    "mib": 1 / 1024,
    "mb": 1 / 1024,
    "kib": 1 / 1024**2,
    "kb": 1 / 1024**2,
    "bytes": 1 / 1024**3,
}
"""Frameworks print GB and mean GiB (torch, DeepSpeed, nvidia-smi), so the two are one unit here."""
_LONGEST_NAME = 120
SECONDS = frozenset({"step_time", "data_time"})
GIBIBYTES = frozenset({"memory_allocated", "memory_reserved"})
_PERCENT = frozenset({"gpu_utilization"})


class Meaning(NamedTuple):
    """What a column of numbers is called and how its values become the common unit."""

    name: str
    unit: str
    factor: float
    guess: bool = False
    """The name states no unit of memory; it is guessed from the size of the values."""


@lru_cache(maxsize=4096)
def meaning(raw: str) -> Meaning:
    """Return the common name, unit and factor of a metric as a file names it.

    Trackers put the name of the run in front when they export a table (`run-7 - train/loss`).
    """
    name = raw.strip().lower().rsplit(" - ", 1)[-1][-_LONGEST_NAME:]
    match = _SUFFIX.match(name)
    stem, unit = (match["stem"], match["unit"]) if match and match["stem"] else (name, "")
    common = canonical_metric(name)
    if common not in METRIC_NAMES and canonical_metric(stem) in METRIC_NAMES:
        common = canonical_metric(stem)
    if common in SECONDS:
        return Meaning(common, "s", _TIME.get(unit, 1.0))
    if common in GIBIBYTES:
        return Meaning(common, "GiB", _MEMORY.get(unit, 1.0), guess=unit not in _MEMORY)
    if common in _PERCENT:
        return Meaning(common, "%", 1.0)
    if common in METRIC_NAMES or not unit:
        return Meaning(common, "", 1.0)
    return Meaning(common, {"pct": "%", "percent": "%"}.get(unit, unit), 1.0)


def in_common_unit(values: npt.NDArray[np.float64], as_named: Meaning) -> npt.NDArray[np.float64]:
    """Return the values in the unit of `meaning`; memory without a unit is read as bytes, MiB or GiB by its size.

    No device holds 1e5 GiB and no useful reading in bytes is below 1e6: the ranges do not overlap.
    """
    factor = as_named.factor
    if as_named.guess and np.isfinite(values).any():
        largest = float(np.nanmax(np.where(np.isfinite(values), np.abs(values), np.nan)))
        factor = 1 / 1024**3 if largest > 1e7 else 1 / 1024 if largest > 1024 else 1.0
    return values if factor == 1.0 else values * factor

"""The events of a profiler trace in columns: what happened when and for how long, and what launched what."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rca.ingest.trace_json import TraceArgs, TraceEvent
from rca.ingest.trace_names import DEVICE, KERNELS, SKIPPED, Kind, Role, kind_of

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Whole = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

MAX_NAME = 300
"""Characters kept of a name; kernels of template libraries have names of thousands."""


_LATEST = 1e17
_LONGEST = 1e14
"""Microseconds; beyond them a time is a damaged number."""


class Memory(NamedTuple):
    """What the allocators reported (`[memory]` events)."""

    time: Floats
    device_type: Whole
    """c10::DeviceType: 0 is the host."""
    allocated: Floats
    """Bytes; -1 where not reported."""
    reserved: Floats


class Columns:
    """Columns of a trace; `add` batches first, then read."""

    def __init__(self) -> None:
        self._keys: dict[tuple[str, str], int] = {}
        self._threads: dict[tuple[int | str, int | str], int] = {}
        self._parts: dict[str, list[npt.NDArray[Any]]] = {
            "key": [],
            "start": [],
            "duration": [],
            "correlation": [],
            "thread": [],
        }
        self._memory: list[tuple[float, int, float, float]] = []
        self.collectives: list[tuple[str, float, float, TraceArgs]] = []
        """(name of the kernel, start, duration, arguments) of the collectives that say what they moved."""
        self.devices: set[int | str] = set()
        """Devices on which kernels ran."""
        self.unpaired = 0
        """Events of the begin/end form, which are not read."""

    def add(self, events: Sequence[TraceEvent]) -> None:
        """Take the events of one batch."""
        spans = [event for event in events if event.ph == "X" and event.cat not in SKIPPED]
        keys, threads, parts = self._keys, self._threads, self._parts
        count = len(spans)
        pairs = ((event.cat, event.name[:MAX_NAME]) for event in spans)
        parts["key"].append(np.fromiter((keys.setdefault(pair, len(keys)) for pair in pairs), np.int64, count))
        parts["start"].append(np.fromiter((event.ts for event in spans), np.float64, count))
        parts["duration"].append(np.fromiter((event.dur for event in spans), np.float64, count))
        parts["correlation"].append(
            np.fromiter((-1 if event.args is None else event.args.correlation for event in spans), np.int64, count)
        )
        owners = ((event.pid, event.tid) for event in spans)
        parts["thread"].append(
            np.fromiter((threads.setdefault(owner, len(threads)) for owner in owners), np.int64, count)
        )
        self.devices.update({event.pid for event in spans if event.cat in KERNELS})
        for event in events:
            if event.ph == "X":
                continue
            if event.args is not None and event.name == "[memory]":
                args = event.args
                self._memory.append((event.ts, args.device_type, args.total_allocated, args.total_reserved))
            elif event.ph in {"B", "E"}:
                self.unpaired += 1
        self.collectives += [
            (event.name[:MAX_NAME], event.ts, event.dur, event.args)
            for event in spans
            if event.args is not None and event.args.collective is not None and event.cat in KERNELS
        ]

    def __len__(self) -> int:
        return len(self.key)

    def _joined(self, name: str) -> npt.NDArray[Any]:
        parts = self._parts[name]
        return np.concatenate(parts) if parts else np.empty(0)

    @cached_property
    def _good(self) -> Mask:
        start, duration = self._joined("start"), self._joined("duration")
        good: Mask = (start >= 0) & (start < _LATEST) & (duration >= 0) & (duration < _LONGEST)
        return good

    @cached_property
    def key(self) -> Whole:
        """Code of category and name of every span."""
        return self._joined("key").astype(np.int64)[self._good]

    @cached_property
    def start(self) -> Floats:
        """Microseconds."""
        return self._joined("start")[self._good].astype(float)

    @cached_property
    def duration(self) -> Floats:
        """Microseconds."""
        return self._joined("duration")[self._good].astype(float)

    @cached_property
    def end(self) -> Floats:
        """Microseconds."""
        return self.start + self.duration

    @cached_property
    def correlation(self) -> Whole:
        """Id that a launch shares with what it launched; -1 where there is none."""
        return self._joined("correlation").astype(np.int64)[self._good]

    @cached_property
    def thread(self) -> Whole:
        """Code of process and thread, or of device and stream."""
        return self._joined("thread").astype(np.int64)[self._good]

    @cached_property
    def names(self) -> list[tuple[str, str]]:
        """Category and name by code."""
        return list(self._keys)

    @cached_property
    def kinds(self) -> list[Kind]:
        """What the spans of each code are."""
        return [kind_of(category, name) for category, name in self.names]

    @cached_property
    def role(self) -> npt.NDArray[np.int64]:
        """Role of every span."""
        return np.array([int(kind.role) for kind in self.kinds], dtype=np.int64)[self.key]

    def has(self, flag: str) -> Mask:
        """Say which spans have a property of `Kind` (`launch`, `sync`, ...)."""
        known = np.array([bool(getattr(kind, flag)) for kind in self.kinds], dtype=bool)
        found: Mask = known[self.key]
        return found

    @cached_property
    def on_device(self) -> Mask:
        """Say which spans ran on a device: copies and kernels, collective ones among them."""
        host = np.array([category.lower() in {"cpu_op", "operator", "user_annotation"} for category, _ in self.names])
        if not len(host):
            return np.zeros(0, dtype=bool)
        ours: Mask = np.isin(self.role, DEVICE) | ((self.role == Role.COMMUNICATION) & ~host[self.key])
        return ours

    @cached_property
    def memory(self) -> Memory:
        """What the allocators reported, in time order."""
        rows = np.array(self._memory, dtype=float).reshape(-1, 4)
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        return Memory(rows[:, 0], rows[:, 1].astype(np.int64), rows[:, 2], rows[:, 3])

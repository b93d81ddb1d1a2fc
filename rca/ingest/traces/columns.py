"""The events of a profiler trace in columns: what happened when and for how long, and what launched what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rca.ingest.traces.names import DEVICE, KERNELS, SKIPPED, Kind, Role, kind_of
from rca.ingest.traces.trace_json import TraceArgs, TraceEvent

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Whole = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

MAX_NAME = 300
"""Characters kept of a name; kernels of template libraries have names of thousands."""
MAX_NAMES = 200_000
"""Different names on different threads, and different shapes, that are told apart; further ones count as one."""
MAX_SHAPES = 400
"""Characters kept of the input shapes of one call."""

_LATEST = 1e17
_LONGEST = 1e14
"""Microseconds; beyond them a time is a damaged number."""
_MAX_OPEN = 10_000
"""Spans of the begin/end form that are open at once."""

_WHAT = attrgetter("cat", "name", "pid", "tid")
_SHAPES = attrgetter("args.shapes")
_FIELDS = {"start": attrgetter("ts"), "duration": attrgetter("dur"), "correlation": attrgetter("args.correlation")}
_TYPES = {"what": np.int32, "start": np.float64, "duration": np.float64, "correlation": np.int64, "shapes": np.int32}
_PASSED = frozenset({"X", "M", "s", "t", "f", "C", "N", "O", "D", "P"})
"""Phases of events that are spans already, or that say nothing of time: arrows, counters, objects, descriptions."""
_BEGIN, _END = frozenset("Bb"), frozenset("Ee")


class Memory(NamedTuple):
    """What the allocators reported (`[memory]` events)."""

    time: Floats
    device_type: Whole
    """c10::DeviceType: 0 is the host."""
    device_id: Whole
    allocated: Floats
    """Bytes; -1 where not reported."""
    reserved: Floats


class _Codes(dict[Any, int]):
    """Numbers keys in the order in which they come."""

    def __missing__(self, key: Any) -> int:
        if len(self) >= MAX_NAMES:
            key = (key[0] if key[0] in KERNELS else "", "", -1, -1) if isinstance(key, tuple) else b""
            if key in self:
                return self[key]
        code = self[key] = len(self)
        return code


class Columns:
    """Columns of a trace; `add` batches first, then read."""

    def __init__(self) -> None:
        self._whats, self._shapes = _Codes(), _Codes({b"": 0})
        self._parts: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in _TYPES}
        self._memory: list[Floats] = []
        self._reports: list[tuple[float, int, int, float, float]] = []
        self._open: dict[tuple[Any, ...], list[TraceEvent]] = {}
        self._opened = 0
        self.collectives: list[tuple[str, float, float, TraceArgs]] = []
        """(name of the kernel, start, duration, arguments) of the collectives that say what they moved."""
        self.devices: set[int | str] = set()
        """Devices on which kernels ran."""
        self.unpaired = 0
        """Ends without a beginning; `unclosed` counts beginnings without an end."""

    @property
    def unclosed(self) -> int:
        """Spans of the begin/end form that do not end in the trace."""
        return self._opened

    def add(self, events: Sequence[TraceEvent]) -> None:
        """Take the events of one batch."""
        spans = [event for event in events if event.ph == "X" and event.cat not in SKIPPED]
        spans += [span for event in events if event.ph not in _PASSED for span in self._paired(event)]
        if self._reports:
            self._memory.append(np.array(self._reports, dtype=np.float64))
            self._reports.clear()
        count, parts = len(spans), {}
        for name, field in _FIELDS.items():
            parts[name] = np.fromiter(map(field, spans), _TYPES[name], count)
        parts["what"] = np.fromiter(map(self._whats.__getitem__, map(_WHAT, spans)), np.int32, count)
        shapes = map(bytes, map(_SHAPES, spans))
        parts["shapes"] = np.fromiter(map(self._shapes.__getitem__, shapes), np.int32, count)
        start, duration = parts["start"], parts["duration"]
        good = (start >= 0) & (start < _LATEST) & (duration >= 0) & (duration < _LONGEST)
        for name, part in parts.items():
            self._parts[name].append(part if good.all() else part[good])
        kernels = [event for event in spans if event.cat in KERNELS]
        self.devices.update({event.pid for event in kernels})
        self.collectives += [
            (event.name[:MAX_NAME], event.ts, event.dur, event.args)
            for event in kernels
            if event.args.collective is not None
        ]

    def _paired(self, event: TraceEvent) -> Iterator[TraceEvent]:
        """Take an event that is no span by itself; yield the span that it ends."""
        if event.name == "[memory]":
            args = event.args
            row = (event.ts, args.device_type, args.device_id, args.total_allocated, args.total_reserved)
            self._reports.append(row)
        elif event.ph in _BEGIN and self._opened < _MAX_OPEN and event.cat not in SKIPPED:
            self._open.setdefault(_owner(event), []).append(event)
            self._opened += 1
        elif event.ph in _END:
            waiting = self._open.get(_owner(event))
            if waiting:
                begin = waiting.pop()
                self._opened -= 1
                if not waiting:
                    del self._open[_owner(event)]
                args = begin.args if begin.args.correlation >= 0 else event.args
                yield TraceEvent("X", begin.cat, begin.name, begin.pid, begin.tid, begin.ts, event.ts - begin.ts, args)
            else:
                self.unpaired += event.cat not in SKIPPED

    def __len__(self) -> int:
        return len(self.key)

    def _joined(self, name: str) -> npt.NDArray[Any]:
        parts = self._parts.pop(name)
        return np.concatenate(parts) if parts else np.empty(0, _TYPES[name])

    @cached_property
    def _what(self) -> npt.NDArray[np.int32]:
        """Code of category, name, process and thread of every span; one lookup is cheaper than two."""
        return self._joined("what")

    @cached_property
    def key(self) -> npt.NDArray[np.int32]:
        """Code of category and name of every span."""
        code = {name: index for index, name in enumerate(self.names)}
        codes = [code[category, name[:MAX_NAME]] for category, name, _, _ in self._whats]
        return np.array(codes, dtype=np.int32)[self._what]

    @cached_property
    def start(self) -> Floats:
        """Microseconds."""
        return self._joined("start")

    @cached_property
    def duration(self) -> Floats:
        """Microseconds."""
        return self._joined("duration")

    @cached_property
    def end(self) -> Floats:
        """Microseconds."""
        return self.start + self.duration

    @cached_property
    def correlation(self) -> Whole:
        """Id that a launch shares with what it launched; -1 where there is none."""
        return self._joined("correlation")

    @cached_property
    def thread(self) -> npt.NDArray[np.int32]:
        """Code of process and thread, or of device and stream."""
        threads = _Codes()
        return np.array([threads[process, thread] for _, _, process, thread in self._whats], dtype=np.int32)[self._what]

    @cached_property
    def shapes(self) -> npt.NDArray[np.int32]:
        """Code of the input shapes of every span; 0 where none are recorded."""
        return self._joined("shapes")

    def shapes_of(self, code: int) -> str:
        """Return the input shapes of a code as the trace writes them."""
        if self._shape_texts is None:
            self._shape_texts = [
                key[:MAX_SHAPES].decode("utf-8", "replace") if isinstance(key, bytes) else "" for key in self._shapes
            ]
        return self._shape_texts[code]

    _shape_texts: list[str] | None = None

    @cached_property
    def names(self) -> list[tuple[str, str]]:
        """Category and name by code."""
        return list(dict.fromkeys((category, name[:MAX_NAME]) for category, name, _, _ in self._whats))

    @cached_property
    def kinds(self) -> list[Kind]:
        """What the spans of each code are."""
        return [kind_of(category, name) for category, name in self.names]

    @cached_property
    def role(self) -> npt.NDArray[np.int8]:
        """Role of every span."""
        return np.array([int(kind.role) for kind in self.kinds], dtype=np.int8)[self.key]

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
        rows = np.concatenate([np.empty((0, 5)), *self._memory])
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        return Memory(rows[:, 0], rows[:, 1].astype(np.int64), rows[:, 2].astype(np.int64), rows[:, 3], rows[:, 4])


def _owner(event: TraceEvent) -> tuple[Any, ...]:
    """Tell which beginnings an end may belong to: those of its thread, or those of its id."""
    if event.ph in {"B", "E"}:
        return event.pid, event.tid
    return event.cat, event.id, event.name

"""The numbers in an out-of-memory message, whichever generation of PyTorch wrote it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from rca.events import Event, EventTable
from rca.facts.failure.phase import frames_of
from rca.facts.failure.roles import short_name
from rca.facts.memo import once_per_table

GIB = 1024**3
CONTEXT = GIB // 2
"""A CUDA context with the usual libraries, which no tensor accounts for."""
_SIZE = r"([0-9]+(?:\.[0-9]+)?) ?(bytes|[KMGT]i?B)"
_UNITS = {"BYTES": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
"""The allocator prints powers of two whatever it calls them."""

_PATTERNS = {
    "tried_bytes": rf"[Tt]ried to allocate {_SIZE}",
    "capacity_bytes": rf"(?:total capaci?ty of|(?:(?:GPU|NPU|XPU|MLU) [0-9]+; )) ?{_SIZE}",
    "free_bytes": rf"{_SIZE} (?:is )?free",
    "used_bytes": rf"(?:this process has|[Pp]rocess has) {_SIZE} memory in use",
    "allocated_bytes": rf"(?:Of the allocated memory {_SIZE} is allocated|{_SIZE} already allocated)",
    "reserved_unallocated_bytes": rf"{_SIZE} is reserved by PyTorch but unallocated",
    "reserved_total_bytes": rf"{_SIZE} reserved in total",
    "allowed_bytes": rf"{_SIZE} allowed",
    "pool_bytes": rf"{_SIZE} allocated in private pools",
}
_OTHERS = rf"[Pp]rocess [0-9]+ has {_SIZE} memory in use"
_EXCEPTIONS = frozenset({"RuntimeError", "AcceleratorError"})
_OF_GRAPHS = frozenset({"XlaRuntimeError", "JaxRuntimeError", "ResourceExhaustedError"})
"""Raised where a compiled graph ran; the allocator of TensorFlow and JAX complains in lines of its own before."""

_BEFORE_IT_RAISES = frozenset({"cuda.oom_tensorflow", "jax.oom"})
_DUMP_LINES = 2000
"""TensorFlow prints what its allocator holds, chunk by chunk, between the first complaint and the traceback."""


@dataclass(frozen=True)
class OutOfMemory:
    """One refused device allocation. Sizes in bytes; None where the message does not say."""

    event: Event
    exception: Event | None
    """The traceback around it, if there is one."""
    frames: tuple[Mapping[str, Any], ...] = ()
    """The stack on which it was refused, outermost first; an exception raised while it was handled has another."""
    tried: int | None = None
    gpu: int | None = None
    capacity: int | None = None
    free: int | None = None
    used: int | None = None
    """By this process, with what lies outside PyTorch."""
    allocated: int | None = None
    reserved_unallocated: int | None = None
    allowed: int | None = None
    """Cap set by set_per_process_memory_fraction."""
    named: tuple[int, ...] = ()
    """Held by the processes that the message names by number."""

    @property
    def reserved(self) -> int | None:
        """What PyTorch holds of the device."""
        if self.allocated is None or self.reserved_unallocated is None:
            return None
        return self.allocated + self.reserved_unallocated

    @property
    def held_by_others(self) -> int | None:
        """What other processes hold: named by the message, or what of the device nobody here accounts for.

        Inside a container the allocator cannot tell its own process, so the named one that fits is taken for it.
        """
        named = list(self.named)
        if self.used is None and self.reserved is not None:
            own = [size for size in named if 0 <= size - self.reserved + CONTEXT // 4 <= 4 * CONTEXT]
            if own:
                named.remove(own[0])
        mine = self.used if self.used is not None else None if self.reserved is None else self.reserved + CONTEXT
        if self.capacity is None or self.free is None or mine is None:
            return sum(named) if self.named else None
        return max(sum(named), self.capacity - self.free - mine, 0)


@once_per_table
def refusals(events: EventTable) -> tuple[OutOfMemory, ...]:
    """Return the refused device allocations in order, each once although traceback and message are two events."""
    exceptions = [event for event in events.of_kind("exception") if _raises_oom(event)]
    messages = [event for event in events.of_kind("log") if _tells_oom(event)]
    raised = events.of_kind("exception")
    found = [_join(message, _traceback(message, exceptions), _handled(message, raised)) for message in messages]
    covered = {item.exception.event_id for item in found if item.exception is not None}
    found += [_join(event, event) for event in exceptions if event.event_id not in covered]
    if not found:  # where no log tells of it, a memory snapshot may
        size = _device_size(events)
        found = [_recorded(event, size) for event in events.named("memory.refused", kind="system")]
    return tuple(sorted(found, key=lambda item: item.event.event_id))


def _tells_oom(event: Event) -> bool:
    return (event.name.startswith("cuda.oom") or event.name == "jax.oom") and event.role != "benign"


def _recorded(event: Event, size: int | None) -> OutOfMemory:
    """Read a refused allocation from the history in a memory snapshot, which does not tell the size of the device."""
    frames = event.attr("frames")
    return replace(_join(event, None), frames=tuple(frames) if isinstance(frames, list) else (), capacity=size)


def _device_size(events: EventTable) -> int | None:
    """Memory of the devices where a table of them was read and all have as much."""
    told = (event.attr("memory_total_bytes") for event in events.named("system.gpu", kind="system"))
    sizes = {int(size) for size in told if _plain(size)}
    return sizes.pop() if len(sizes) == 1 else None


def _raises_oom(event: Event) -> bool:
    name = short_name(event.name)
    if name == "OutOfMemoryError":
        return True
    text = event.text
    if name in _OF_GRAPHS:
        return "out of memory" in text.lower() or "OOM" in text or name == "ResourceExhaustedError"
    return (
        name in _EXCEPTIONS
        and "out of memory" in text
        and any(word in text for word in ("CUDA", "HIP", "XPU", "GPU", "NPU", "MLU", "MUSA"))
    )


def _traceback(message: Event, exceptions: list[Event]) -> Event | None:
    near = [
        item
        for item in exceptions
        if item.source == message.source
        and item.line is not None
        and message.line is not None
        and item.line - 2 <= message.line <= item.line + 400
        and (item.text[:60] in message.text or message.text[:60] in item.text or item.line == message.line)
    ]
    if not near and message.name in _BEFORE_IT_RAISES:
        near = [
            item
            for item in exceptions
            if item.source == message.source
            and short_name(item.name) in _OF_GRAPHS
            and 0 <= (item.line or 0) - (message.line or 0) <= _DUMP_LINES
        ]
    return min(near, key=lambda item: abs((item.line or 0) - (message.line or 0)), default=None)


def _handled(message: Event, raised: Sequence[Event]) -> list[Mapping[str, Any]]:
    """Return the stack of the exception on that line, when others were raised while it was handled."""
    for event in raised:
        for inner in event.attr("chain") or []:
            if message.line is not None and (event.source, inner.get("line")) == (message.source, message.line):
                return list(inner.get("frames") or [])
    return []


def _join(event: Event, exception: Event | None, handled: Sequence[Mapping[str, Any]] = ()) -> OutOfMemory:
    sizes: dict[str, int] = {}
    for source in (exception, event):
        if source is not None:
            sizes.update(sizes_in(source.text))
            sizes.update(
                {key: int(value) for key, value in (source.attrs or {}).items() if key in _KNOWN and _plain(value)}
            )
    allocated = sizes.get("allocated_bytes")
    unallocated = sizes.get("reserved_unallocated_bytes")
    total = sizes.get("reserved_total_bytes")
    if unallocated is None and total is not None and allocated is not None:
        unallocated = max(total - allocated, 0)
    return OutOfMemory(
        event=event,
        exception=exception,
        frames=tuple(handled or (frames_of(exception) if exception is not None else ())),
        tried=sizes.get("tried_bytes"),
        gpu=sizes.get("gpu"),
        capacity=sizes.get("capacity_bytes"),
        free=sizes.get("free_bytes"),
        used=sizes.get("used_bytes"),
        allocated=allocated,
        reserved_unallocated=unallocated,
        allowed=sizes.get("allowed_bytes"),
        named=_named(exception, event),
    )


_KNOWN = frozenset({*_PATTERNS, "gpu"})


def _named(*sources: Event | None) -> tuple[int, ...]:
    for source in sources:
        if source is None:
            continue
        named = tuple(_bytes(match) for match in _compiled()["process_bytes"].finditer(source.text))
        captured = source.attr("process_bytes")
        if named or _plain(captured):
            return named or (int(captured),)
    return ()


def _plain(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


@lru_cache(maxsize=1)
def _compiled() -> dict[str, Any]:
    import re2

    return {name: re2.compile(pattern) for name, pattern in {**_PATTERNS, "process_bytes": _OTHERS}.items()}


@lru_cache(maxsize=512)
def _sizes(text: str) -> tuple[tuple[str, int], ...]:
    found: dict[str, int] = {}
    for name, pattern in _compiled().items():
        match = pattern.search(text) if name != "process_bytes" else None
        if match is not None:
            found[name] = _bytes(match)
    return tuple(found.items())


def sizes_in(text: str) -> dict[str, int]:
    """Return the sizes named in an out-of-memory message, in bytes, under the capture names of the signatures."""
    return dict(_sizes(text))


def _bytes(match: Any) -> int:
    groups = [group for group in match.groups() if group is not None]
    return int(float(groups[0]) * _UNITS[groups[1].upper().replace("IB", "B")])

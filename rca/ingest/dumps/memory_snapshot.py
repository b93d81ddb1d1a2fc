"""Memory snapshots of PyTorch (`torch.cuda.memory._dump_snapshot`): what each device held, and who had asked for it.

A snapshot is a pickle of plain values: `segments` with their blocks, `device_traces` with the recorded actions of each
device, `allocator_settings`. Format: `torch.cuda.memory._snapshot` and torch/csrc/cuda/Module.cpp.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.dumps.plain_pickle import MAX_PICKLE, read_plain
from rca.ingest.dumps.recorded_stacks import Places, as_exception_frames, frames_of, whole, words
from rca.ingest.dumps.snapshot_history import History, read_history
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.tables.structured import MAX_STRUCTURED, decode, parse_json, read_whole

MAX_BLOCKS = 1_000_000
MAX_DEVICES = 64
_TOP = 8
"""Places that are told with the memory they hold."""
_STACK = 16
_PAGE, _PACKED, _HEAD = b"/viz/MemoryViz.js", b'"base64": "', 4096
"""Pages of `torch.cuda._memory_viz trace_plot` carry the pickle as text."""
_START = 400
"""Bytes at the start of a pickle in which its first key stands."""


@dataclass
class _Device:
    """What the segments of one device add up to, in bytes."""

    reserved: int = 0
    allocated: int = 0
    active: int = 0
    requested: int = 0
    split: int = 0
    """Free blocks beside used ones: memory that cannot be given back."""
    whole_free: int = 0
    """Segments without a used block."""
    largest_free: int = 0
    pools: int = 0
    """Reserved by private pools, those of CUDA graphs."""
    segments: int = 0
    blocks: int = 0
    expandable: bool = False
    held: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Bytes and blocks in use, by the place that asked for them."""


class MemorySnapshotIngestor:
    """Reads one snapshot into a summary for each device and an event for each refused allocation."""

    name = "memory snapshot"

    def accepts(self, source: Source, head: bytes) -> bool:  # noqa: ARG002 - the content decides
        """Take pickles and JSON whose first keys are those of a snapshot, and pages of the memory viewer."""
        if head.startswith(b"\x80"):
            return any(key in head[:_START] for key in (b"segments", b"device_traces"))
        if _PAGE in head:
            return True
        if head.lstrip()[:1] != b"{":
            return False
        return b'"device_traces"' in head or (b'"segments"' in head and b'"total_size"' in head)

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read the snapshot. Raises UnreadableSource where it is broken or holds anything but plain values."""
        found = read_whole(source, context, MAX_PICKLE)
        snapshot = _parsed(found.data, source.path)
        segments = snapshot.get("segments") if isinstance(snapshot, dict) else None
        if not isinstance(segments, list):
            raise UnreadableSource(f"{source.path} is no memory snapshot: it holds no list of segments.")
        places = Places()
        devices = _devices(segments, places)
        traces = snapshot.get("device_traces")
        histories = _histories(traces if isinstance(traces, list) else [], devices, places)
        out = EventBuilder(source.path, rank=source.rank, host=source.host)
        for number in sorted(set(devices) | set(histories)):
            _add_device(out, number, devices.get(number, _Device()), histories.get(number), snapshot)
        if not len(out):
            raise UnreadableSource(f"{source.path} is a memory snapshot of a process that had not used a device.")
        lines = len(segments) + sum(history.entries for history in histories.values())
        return Ingested(out.build(), lines=lines, bytes=len(found.data), warnings=found.warnings)


def _parsed(data: bytes, path: str) -> Any:
    if data.startswith(b"\x80"):
        return read_plain(data, what=path)
    if _PAGE in data[:_HEAD]:
        start = data.find(_PACKED)
        packed = data[start + len(_PACKED) : max(data.find(b'"', start + len(_PACKED)), 0)] if start >= 0 else b""
        try:
            return read_plain(base64.b64decode(packed, validate=True), what=path)
        except binascii.Error as error:
            raise UnreadableSource(f"{path} is a page of the memory viewer whose snapshot is cut off.") from error
    if len(data) > MAX_STRUCTURED:
        raise UnreadableSource(f"{path} is JSON of more than {MAX_STRUCTURED:,} bytes; record fewer entries.")
    return parse_json(decode(data), what=path)


def _devices(segments: Sequence[Any], places: Places) -> dict[int, _Device]:
    devices: dict[int, _Device] = {}
    blocks = 0
    for segment in segments:
        if blocks >= MAX_BLOCKS:
            break
        if not isinstance(segment, dict):
            continue
        number = whole(segment.get("device")) or 0
        if number not in devices and len(devices) >= MAX_DEVICES:
            continue
        device = devices.setdefault(number, _Device())
        listed = segment.get("blocks")
        kept = [block for block in listed[:MAX_BLOCKS] if isinstance(block, dict)] if isinstance(listed, list) else []
        blocks += len(kept) + 1
        _count(device, segment, kept, places)
    return devices


def _count(device: _Device, segment: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]], places: Places) -> None:
    total = whole(segment.get("total_size")) or 0
    device.reserved += total
    device.segments += 1
    device.blocks += len(blocks)
    device.expandable = device.expandable or segment.get("is_expandable") is True
    pool = segment.get("segment_pool_id")
    if isinstance(pool, (tuple, list)) and any(part not in (0, None) for part in pool[:2]):
        device.pools += total
    free = used = 0
    for block in blocks:
        size, state = whole(block.get("size")) or 0, words(block.get("state"))
        if state == "inactive":
            free += size
            device.largest_free = max(device.largest_free, size)
            continue
        used += size
        device.active += size
        if state != "active_allocated":
            continue
        device.allocated += size
        device.requested += whole(block.get("requested_size")) or size
        place = places.of(frames_of(block))
        before, count = device.held.get(place, (0, 0))
        device.held[place] = (before + size, count + 1)
    if used:
        device.split += free
    else:
        device.whole_free += free


def _histories(traces: Sequence[Any], devices: Mapping[int, _Device], places: Places) -> dict[int, History]:
    found: dict[int, History] = {}
    for number, entries in enumerate(traces[:MAX_DEVICES]):
        if isinstance(entries, list) and entries:
            device = devices.get(number, _Device())
            found[number] = read_history(entries, in_use=device.active, reserved=device.reserved, places=places)
    return found


def _add_device(
    out: EventBuilder, number: int, device: _Device, history: History | None, snapshot: Mapping[str, Any]
) -> None:
    held = sorted(((size, count, place) for place, (size, count) in device.held.items() if place), reverse=True)
    attrs: dict[str, Any] = {
        "device": number,
        "allocated_bytes": device.allocated,
        "active_bytes": device.active,
        "requested_bytes": device.requested,
        "reserved_bytes": device.reserved,
        "inactive_bytes": device.split,
        "free_segment_bytes": device.whole_free,
        "largest_free_bytes": device.largest_free,
        "pool_bytes": device.pools,
        "segments": device.segments,
        "blocks": device.blocks,
        "expandable": device.expandable,
        "places": [{"where": place, "bytes": size, "blocks": count} for size, count, place in held[:_TOP]],
    }
    settings = snapshot.get("allocator_settings")
    if isinstance(settings, dict):
        attrs["settings"] = words(settings.get("PYTORCH_CUDA_ALLOC_CONF") or settings.get("PYTORCH_ALLOC_CONF")) or None
    if history is not None:
        growing = history.growing
        attrs |= {
            "ooms": len(history.refused),
            "history": history.entries,
            "active_peak_bytes": history.peak,
            "floor_bytes": history.floors,
            "growing": None if growing is None else dict(zip(("where", "bytes", "blocks"), growing, strict=True)),
        }
    text = (
        f"PyTorch memory snapshot of device {number}: {_gib(device.active)} in use of {_gib(device.reserved)} reserved"
    )
    out.add(kind="system", name="system.memory_summary", line=number + 1, text=text, attrs=attrs)
    for refused in history.refused if history is not None else ():
        use = f"{_gib(refused.in_use)} of {_gib(refused.reserved)} reserved were in use"
        text = f"Device {number} refused {_gib(refused.size)}; {use}"
        out.add(
            kind="system",
            name="memory.refused",
            line=number + 1,
            severity="error",
            text=text,
            attrs={
                "gpu": number,
                "tried_bytes": refused.size,
                "free_bytes": refused.device_free,
                "allocated_bytes": refused.in_use,
                "reserved_unallocated_bytes": max(refused.reserved - refused.in_use, 0),
                "frames": as_exception_frames(refused.frames, _STACK),
            },
        )


def _gib(size: int) -> str:
    return f"{size / 1024**3:.2f} GiB"

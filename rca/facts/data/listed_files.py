"""What a printed listing of the data says: files that hold a header and nothing behind it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import median

from rca.events import EventTable
from rca.facts.emit import emit
from rca.facts.interface import Fact, FactFunction

CATALOGUE: Mapping[str, str] = {
    "data.header_only_files": "listed data files that are no longer than the header of their format, beside full ones",
}
_HEADER: Mapping[str, int] = {
    "wav": 100,
    "flac": 100,
    "mp3": 128,
    "ogg": 128,
    "png": 66,
    "jpg": 125,
    "jpeg": 125,
    "npy": 128,
    "npz": 22,
    "parquet": 12,
    "gz": 20,
    "zip": 22,
    "tar": 1024,
    "tfrecord": 0,
    "mp4": 48,
    "txt": 0,
    "json": 2,
    "jsonl": 0,
}
"""The largest size in bytes of a file of a format that holds no sample: RIFF/WAVE with an empty data chunk (44 to 80),
the PNG and JPEG of one pixel, the header of NumPy's format 1.0, an empty zip directory, two blocks of zeros of tar."""
_FULL = 8
"""How many times longer the middle file of the format must be; otherwise small files are usual there."""


def header_only(events: EventTable) -> Iterator[Fact]:
    """Which listed data files hold no sample although their neighbours do?"""
    hollow: list[tuple[str, int, int]] = []
    listed: list[int] = []
    for event in events.named("files.listing"):
        sizes: dict[str, dict[str, int]] = defaultdict(dict)
        for name, size in event.attr("files", {}).items():
            suffix = str(name).rpartition(".")[2].lower()
            if suffix in _HEADER:
                sizes[suffix][str(name)] = int(size)
        for suffix, files in sizes.items():
            listed.append(event.event_id)
            if median(files.values()) < _FULL * max(_HEADER[suffix], 16):
                continue
            hollow += [(name, size, event.event_id) for name, size in files.items() if size <= _HEADER[suffix]]
    if not listed:
        return
    names = ", ".join(f"{name} with {size} bytes" for name, size, _event in hollow[:3])
    says = f"{len(hollow)} listed data files hold no sample: {names}." if hollow else "No listed data file is empty."
    yield from emit(
        "data.header_only_files", len(hollow), says, events=[event for _name, _size, event in hollow] or listed
    )


FACTS: tuple[FactFunction, ...] = (header_only,)

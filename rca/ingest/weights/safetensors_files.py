"""safetensors files: the header and the sizes it implies, never the tensors; a broken file is described."""

from __future__ import annotations

import json
import struct
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Place, Source
from rca.ingest.weights.weight_summary import Tensor, summarise

MAX_AXES = 64
"""Axes of a tensor in torch (c10/core/TensorImpl) and NumPy."""
MAX_HEADER = 100_000_000
"""Bytes above which the safetensors library refuses a header (safetensors/src/tensor.rs, MAX_HEADER_SIZE)."""
MAX_DESCRIBED_HEADER = 64 * 1024**2
"""Bytes of a header that is parsed here; the largest published models need less than 10 MB."""
_LONGEST_MESSAGE = 300


class Header(NamedTuple):
    """The header of one file, or what is wrong with it."""

    status: str
    """ok, empty, too_short, header_too_large, header_incomplete, header_invalid, truncated, trailing_bytes."""
    tensors: tuple[Tensor, ...] = ()
    metadata: dict[str, Any] | None = None
    header_bytes: int = 0
    expected_size: int | None = None
    """Bytes the file must have for its header."""


def read_header(file: Place, size: int) -> Header:
    """Read the header of a safetensors file of `size` bytes. Raises OSError where the file cannot be opened."""
    if size < 8:
        return Header("empty" if size == 0 else "too_short")
    with file.open("rb") as stream:
        length = struct.unpack("<Q", stream.read(8))[0]
        if length > MAX_HEADER:
            return Header("header_too_large", header_bytes=length)
        if length > size - 8:
            return Header("header_incomplete", header_bytes=length, expected_size=8 + length)
        if length > MAX_DESCRIBED_HEADER:
            return Header("ok", header_bytes=length)
        raw = stream.read(length)
    try:
        document = json.loads(raw)
        tensors = tuple(
            Tensor(str(name), str(item["dtype"]), tuple(int(part) for part in item["shape"]))
            for name, item in document.items()
            if name != "__metadata__"
        )
        if any(not _possible(tensor.shape) for tensor in tensors):
            return Header("header_invalid", header_bytes=length)
        ends = [int(item["data_offsets"][1]) for name, item in document.items() if name != "__metadata__"]
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError):
        return Header("header_invalid", header_bytes=length)
    expected = 8 + length + max(ends, default=0)
    status = "ok" if size == expected else "truncated" if size < expected else "trailing_bytes"
    metadata = document.get("__metadata__")
    return Header(status, tensors, metadata if isinstance(metadata, dict) else None, length, expected)


def _possible(shape: tuple[int, ...]) -> bool:
    """Say whether a shape can be one of a tensor: the library counts its elements in 64 bits, torch its axes to 64."""
    return len(shape) <= MAX_AXES and all(0 <= size < 2**63 for size in shape) and prod(shape) < 2**63


class SafetensorsIngestor:
    """Reads the header of a safetensors file into one artifact event."""

    name = "weights (safetensors)"

    def accepts(self, source: Source, head: bytes) -> bool:  # noqa: ARG002 - a broken file has no telling head
        """Take `*.safetensors`."""
        return source.path.lower().endswith(".safetensors")

    def read(self, source: Source, context: IngestContext) -> Ingested:  # noqa: ARG002 - nothing here is configurable
        """Describe the file; a broken one is an event that says what is wrong, never an error."""
        try:
            header = read_header(source.file, source.size)
        except OSError as error:
            raise UnreadableSource(f"{source.path} cannot be opened: {error.strerror or error}.") from error
        out = EventBuilder(source.path)
        attrs: dict[str, Any] = {
            "file": source.path.rsplit("/", 1)[-1],
            "format": "safetensors",
            "status": header.status,
            "size": source.size,
            "header_bytes": header.header_bytes,
            "expected_size": header.expected_size,
            "metadata": header.metadata and {key: str(value)[:80] for key, value in list(header.metadata.items())[:16]},
            "loader_says": None if header.status == "ok" else _loader_says(source.file),
            **(summarise(header.tensors) if header.tensors else {}),
        }
        out.add(
            kind="artifact",
            name="weights.shard",
            severity="info" if header.status == "ok" else "error",
            text=f"{attrs['file']}: {header.status.replace('_', ' ')}",
            attrs={key: value for key, value in attrs.items() if value is not None},
        )
        return Ingested(out.build(), lines=1, bytes=min(source.size, 8 + header.header_bytes))


def _loader_says(file: Place) -> str | None:
    """Return the message that the safetensors library gives for a file on this machine that it refuses."""
    from safetensors import SafetensorError, safe_open

    if not isinstance(file, Path):
        return None
    try:
        with safe_open(str(file), framework="np"):
            return None
    except (SafetensorError, OSError, ValueError) as error:
        return str(error)[:_LONGEST_MESSAGE]

"""GGUF files (llama.cpp): the metadata at their head, bounded; tensors are counted, never read."""

from __future__ import annotations

import struct
from typing import Any

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.settings.config_rows import add_settings
from rca.ingest.tables.structured import read_bounded
from rca.ingest.weights.weight_summary import Tensor, summarise

MAX_METADATA = 48 * 1024**2
"""Bytes of the file's head that are read; vocabularies of 256,000 tokens need about 8 MB."""
_MAX_PAIRS = 4096
_MAX_TENSORS = 100_000
_MAX_TEXT = 64 * 1024
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
"""Value types of the GGUF specification (ggml docs/gguf.md)."""
_TYPES = {0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K",
          13: "Q5_K", 14: "Q6_K", 30: "BF16"}  # fmt: skip


class GgufIngestor:
    """Reads the head of a GGUF file: one artifact event and its scalar metadata as configuration."""

    name = "weights (gguf)"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take files that start with the GGUF magic, and empty or foreign `*.gguf`."""
        return head.startswith(b"GGUF") or source.path.lower().endswith(".gguf")

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read the head. Raises UnreadableSource where it is no GGUF file."""
        data, _cut, _notes = read_bounded(source, context, MAX_METADATA)
        out = EventBuilder(source.path)
        name = source.path.rsplit("/", 1)[-1]
        if not data.startswith(b"GGUF") or len(data) < 24:
            raise UnreadableSource(f"{source.path} does not start with the GGUF magic; it is empty or another format.")
        version, tensors, pairs = struct.unpack_from("<IQQ", data, 4)
        reader = _Reader(data, 24)
        metadata: dict[str, Any] = {}
        described: list[Tensor] = []
        status = "ok"
        try:
            for _ in range(min(pairs, _MAX_PAIRS)):
                key = reader.text()
                metadata[key[:200]] = reader.value(reader.scalar("<I"))
            if pairs <= _MAX_PAIRS:
                described = [reader.tensor() for _ in range(min(tensors, _MAX_TENSORS))]
        except (struct.error, ValueError):
            status = "header_incomplete" if source.size <= len(data) else "ok"
        attrs = {
            "file": name,
            "format": "gguf",
            "status": status,
            "size": source.size,
            "version": version,
            "tensors": tensors,
            "architecture": metadata.get("general.architecture"),
            "tokenizer_model": metadata.get("tokenizer.ggml.model"),
            "pre_tokenizer": metadata.get("tokenizer.ggml.pre"),
            "vocabulary": metadata.get("tokenizer.ggml.tokens"),
            **(summarise(described) if described else {}),
        }
        out.add(
            kind="artifact",
            name="weights.gguf",
            severity="info" if status == "ok" else "error",
            text=f"{name}: {status}",
            attrs={key: value for key, value in attrs.items() if value is not None},
        )
        add_settings(out, {key: value for key, value in metadata.items() if value != ""}, role="gguf")
        return Ingested(out.build(), lines=1, bytes=reader.position)


class _Reader:
    """Walks a GGUF head. Raises struct.error or ValueError where it ends or makes no sense."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self.position = position

    def scalar(self, layout: str) -> Any:
        value = struct.unpack_from(layout, self._data, self.position)[0]
        self.position += struct.calcsize(layout)
        return value

    def text(self) -> str:
        length = self.scalar("<Q")
        if length > len(self._data) - self.position:
            raise ValueError("a text is longer than the file")
        raw = self._data[self.position : self.position + min(length, _MAX_TEXT)]
        self.position += length
        return raw.decode("utf-8", "replace")

    def value(self, kind: int) -> Any:
        """Return a scalar or text; of a list only its length."""
        if kind in _SCALARS:
            return self.scalar(_SCALARS[kind])
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            raise ValueError("unknown value type")
        inner, count = self.scalar("<I"), self.scalar("<Q")
        if inner in _SCALARS:
            self.position += count * struct.calcsize(_SCALARS[inner])
        elif inner == _STRING and count <= len(self._data):
            for _ in range(count):
                self.text()
        else:
            raise ValueError("unknown list type")
        if self.position > len(self._data):
            raise ValueError("a list is longer than the file")
        return count

    def tensor(self) -> Tensor:
        name = self.text()
        dimensions = self.scalar("<I")
        if dimensions > 8:
            raise ValueError("too many dimensions")
        shape = tuple(int(self.scalar("<Q")) for _ in range(dimensions))
        kind = self.scalar("<I")
        self.scalar("<Q")
        return Tensor(name[:200], _TYPES.get(kind, str(kind)), tuple(reversed(shape)))

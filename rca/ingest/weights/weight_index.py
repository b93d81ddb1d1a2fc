"""Shard indexes (`model.safetensors.index.json`) held against the folder they lie in."""

from __future__ import annotations

import stat
from collections import Counter
from pathlib import PurePosixPath
from typing import Any

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Place, Source
from rca.ingest.tables.structured import decode, parse_json, plain_name, read_whole
from rca.ingest.weights.lfs_pointers import pointer_of
from rca.ingest.weights.safetensors_files import read_header

MAX_INDEX = 64 * 1024**2
_MAX_SHARDS = 2000
_LARGEST_POINTER = 1024
_SAMPLE = 20


class WeightIndexIngestor:
    """Reads a shard index and says which files and keys it names that are not there."""

    name = "weights (index)"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take `*.index.json` and JSON that starts with a weight map."""
        return plain_name(source.path).endswith(".index.json") or (
            source.path.endswith(".json") and b'"weight_map"' in head
        )

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Compare the index with its folder. Raises UnreadableSource where the file is no index."""
        data, _cut, notes = read_whole(source, context, MAX_INDEX)
        text = decode(data)
        document = parse_json(text, what=source.path)
        mapped = document.get("weight_map") if isinstance(document, dict) else None
        if not isinstance(mapped, dict) or not all(isinstance(item, str) for item in mapped.values()):
            raise UnreadableSource(f"{source.path} has no weight map from tensors to files.")
        out = EventBuilder(source.path)
        metadata = document.get("metadata")
        found = {**_compared(mapped, source.file.parent), "total_size": _total(metadata)}
        wrong = bool(found["missing_files"] or found["missing_keys"])
        out.add(
            kind="artifact",
            name="weights.index",
            severity="error" if wrong else "info",
            value=float(len(found["missing_files"])),
            text=_sentence(found),
            attrs={key: value for key, value in found.items() if value is not None},
        )
        return Ingested(out.build(), lines=text.count("\n") + 1, bytes=len(data), warnings=notes)


def _compared(mapped: dict[str, str], folder: Place) -> dict[str, Any]:
    """Hold the map against the files beside it. Names with a path in them are not followed."""
    shards = Counter(mapped.values())
    owned: dict[str, list[str]] = {}
    for key, owner in mapped.items():
        owned.setdefault(owner, []).append(key)
    try:
        present = {place.name: place for place in folder.iterdir()}
    except OSError:
        present = {}
    names = sorted(shards)[:_MAX_SHARDS]
    missing = [name for name in names if name not in present]
    lost: list[str] = []
    lost_count = checked = 0
    for name in names:
        place = present.get(name)
        keys = None if place is None or not name.endswith(".safetensors") else _keys(place)
        if keys is not None:
            checked += 1
            absent = [key for key in owned[name] if key not in keys]
            lost_count += len(absent)
            lost.extend(absent[: _SAMPLE - len(lost)])
    suffix = PurePosixPath(names[0]).suffix if names else ""
    unlisted = sorted(name for name in present if suffix and name.endswith(suffix) and name not in shards)
    return {
        "tensors": len(mapped),
        "files": len(shards),
        "missing_files": missing[:_SAMPLE],
        "missing_count": len(missing),
        "missing_tensors": sum(shards[name] for name in missing),
        "unlisted_files": unlisted[:_SAMPLE],
        "checked_files": checked,
        "missing_keys": lost,
        "missing_key_count": lost_count,
    }


def _keys(file: Place) -> set[str] | None:
    """Return the tensor names of a whole safetensors shard; None for a link, a pointer or a broken file."""
    try:
        found = file.lstat()
        if not stat.S_ISREG(found.st_mode):
            return None
        if found.st_size < _LARGEST_POINTER:
            with file.open("rb") as stream:
                if pointer_of(stream.read()) is not None:
                    return None
        header = read_header(file, found.st_size)
    except OSError:
        return None
    return {tensor.name for tensor in header.tensors} if header.tensors else None


def _total(metadata: Any) -> int | None:
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    return int(total) if isinstance(total, (int, float)) and 0 <= total < 2**63 else None


def _sentence(found: dict[str, Any]) -> str:
    if found["missing_files"]:
        return f"{found['missing_count']} of {found['files']} files of the index are not in the folder"
    if found["missing_keys"]:
        return f"{found['missing_key_count']} tensors of the index are not in their file"
    return f"all {found['files']} files of the index are in the folder"

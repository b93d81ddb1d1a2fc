"""What `weight_files` measures: files, indexes and checksums of a folder, and how its tensors fit the model class."""

from __future__ import annotations

import json
import re
import struct
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rca.experiments.checks.checksums import compare
from rca.experiments.checks.files import LeftFile, folder_of, is_weight_file, listing, opened, shown

MAX_SCANNED = 4 * 2**30
"""Bytes of tensors that are read, and bytes that are hashed: a few seconds each from a local disk."""
MAX_INDEX = 64 * 2**20
_MOST = 20
_TORCH_NAME = re.compile(r"(?:pytorch_model|adapter_model|model)[^/]{0,60}\.bin$|\.pth?$", re.I)
_WRAPPERS = ("_orig_mod.", "module.", "model.", "base_model.model.", "_fsdp_wrapped_module.", "_forward_module.")


def read_weights(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Read `folder`: its weight files (`part` files) or their fit to the class in config.json (`part` class)."""
    root = Path(settings["folder"])
    left = listing(root).files
    return {"models": list(_models(root, left))} if settings["part"] == "class" else _files(root, left)


def _files(root: Path, left: Sequence[LeftFile]) -> dict[str, Any]:
    budget = MAX_SCANNED
    files = []
    keys: dict[str, set[str]] = {}
    for file in left:
        if file.path.lower().endswith(".safetensors"):
            found, names = _tensors(root, file, budget)
            budget -= found["scanned"]
            keys[file.path] = names
        elif is_weight_file(file.path) and not file.path.lower().endswith(".json"):
            found = _checkpoint(root, file, budget)
            budget -= found["scanned"]
        else:
            continue
        files.append({"path": shown(file.path), "size": file.size, **found})
    present = {file.path for file in left}
    indexes = [_index(root, file, present, keys) for file in left if file.path.lower().endswith(".index.json")]
    return {
        "files": files,
        "indexes": [item for item in indexes if item is not None],
        "checksums": compare(root, left, MAX_SCANNED),
    }


def _tensors(root: Path, file: LeftFile, budget: int) -> tuple[dict[str, Any], set[str]]:
    from rca.experiments.checks.tensor_files import read_header, scan

    try:
        with opened(root, file.path) as stream:
            header = read_header(stream, file.size)
            values = scan(stream, header, file.size, budget)
    except OSError as error:
        return {"problem": f"cannot be read ({error.strerror or error})", "scanned": 0, "whole": False}, set()
    types = Counter(entry.dtype for entry in header.entries)
    return {
        "problem": header.problem,
        "tensors": len(header.entries),
        "types": dict(types.most_common(4)),
        "scanned": values.scanned,
        "whole": values.whole,
        "not_finite": [[name, count] for name, count in values.not_finite[:_MOST]],
        "not_finite_count": len(values.not_finite),
        "largest": values.largest,
        "largest_in": values.largest_in,
        "zero": values.zero[:_MOST],
        "zero_count": len(values.zero),
        "zero_tail": values.zero_tail,
    }, {entry.name for entry in header.entries}


def _checkpoint(root: Path, file: LeftFile, budget: int) -> dict[str, Any]:
    """Check a file of torch.save without unpickling it: its archive, and the checksum of every record in it."""
    found: dict[str, Any] = {"problem": "", "scanned": 0, "whole": False}
    try:
        with opened(root, file.path) as stream:
            head = stream.read(64)
            if head.startswith(b"version https://git-lfs"):
                return {**found, "problem": "is a git-lfs pointer, not the file"}
            if not _TORCH_NAME.search(file.path):
                return found
            if not head:
                return {**found, "problem": "is empty"}
            if head.lstrip()[:1] == b"<":
                return {**found, "problem": "is a web page, not a weight file"}
            if head[:2] != b"PK":
                return found
            with zipfile.ZipFile(stream) as archive:
                records = archive.infolist()
                total = sum(record.file_size for record in records)
                plain = all(record.compress_type == zipfile.ZIP_STORED for record in records)
                if not plain or total > min(budget, 2 * file.size) or len(records) > 100_000:
                    return found
                bad = [record.filename for record in records if not _intact(archive, record)]
    except zipfile.BadZipFile:
        return {**found, "problem": "is cut off: its archive has no directory at the end"}
    except (OSError, ValueError, NotImplementedError, RuntimeError, struct.error) as error:
        return {**found, "problem": f"cannot be read ({type(error).__name__})"}
    # A file written without checksums disagrees in every record; damage hits some of them.
    wrong = f"has {len(bad)} records that differ from their checksum, e.g. {shown(bad[0])[:100]}" if bad else ""
    return {**found, "problem": wrong if len(bad) < len(records) else "", "scanned": total, "whole": not bad}


def _intact(archive: zipfile.ZipFile, record: zipfile.ZipInfo) -> bool:
    try:
        with archive.open(record) as stream:
            while stream.read(1 << 20):
                pass
    except (zipfile.BadZipFile, EOFError):
        return False
    return True


def _index(root: Path, file: LeftFile, present: set[str], keys: Mapping[str, set[str]]) -> dict[str, Any] | None:
    document = _json(root, file.path, MAX_INDEX)
    mapped = document.get("weight_map") if isinstance(document, dict) else None
    if not isinstance(mapped, dict) or not all(isinstance(item, str) for item in mapped.values()):
        return None
    folder = folder_of(file.path)
    owned: dict[str, list[str]] = defaultdict(list)
    for key, owner in mapped.items():
        owned[owner].append(str(key))
    places = {owner: f"{folder}/{owner}" if folder else owner for owner in owned}
    missing = sorted(owner for owner, place in places.items() if place not in present)
    lost = [
        f"{key} ({owner})"
        for owner, place in places.items()
        if keys.get(place)
        for key in owned[owner]
        if key not in keys[place]
    ]
    listed = set(places.values())
    beside = {path: names for path, names in keys.items() if folder_of(path) == folder and path in listed}
    twice = [key for key, count in Counter(key for names in beside.values() for key in names).items() if count > 1]
    extra = sorted(key for path, names in beside.items() for key in names if key not in mapped)
    return {
        "path": shown(file.path),
        "files": len(owned),
        "missing": [shown(name)[:200] for name in missing[:_MOST]],
        "missing_count": len(missing),
        "lost": [shown(name)[:200] for name in lost[:_MOST]],
        "lost_count": len(lost),
        "twice": sorted(twice)[:_MOST],
        "twice_count": len(twice),
        "unlisted": extra[:_MOST],
        "unlisted_count": len(extra),
    }


def _models(root: Path, left: Sequence[LeftFile]) -> Iterator[dict[str, Any]]:
    """Hold the tensors of each folder against the class that its config.json names."""
    from rca.experiments.checks.model_class import UnknownModel, fit, read_settings
    from rca.experiments.checks.tensor_files import Header, read_header

    shards: dict[str, list[LeftFile]] = defaultdict(list)
    for file in left:
        if file.path.endswith(".safetensors") and not file.path.rpartition("/")[2].startswith("adapter"):
            shards[folder_of(file.path)].append(file)
    for file in [item for item in left if item.path.rpartition("/")[2] == "config.json"][:4]:
        folder = folder_of(file.path)
        if not shards[folder]:
            continue
        tensors = []
        broken = _lacking(root, left, folder)
        for shard in shards[folder]:
            try:
                with opened(root, shard.path) as stream:
                    header = read_header(stream, shard.size)
            except OSError as error:
                header = Header(problem=f"cannot be read ({error.strerror})")
            broken = broken or (f"{shown(shard.path)} {header.problem}" if not header.entries else "")
            tensors += [(entry.name, entry.dtype, entry.shape) for entry in header.entries]
        found: dict[str, Any] = {"path": shown(file.path), "tensors": len(tensors)}
        try:
            if broken:
                raise UnknownModel(broken)
            settings = read_settings(root, file.path)
            fits = fit(settings, tensors)
            found |= {
                "class": settings["architectures"][0],
                "missing": list(fits.missing[:_MOST]),
                "missing_count": len(fits.missing),
                "unexpected": list(fits.unexpected[:_MOST]),
                "unexpected_count": len(fits.unexpected),
                "mismatched": [[name, list(stored), list(wanted)] for name, stored, wanted in fits.mismatched[:_MOST]],
                "mismatched_count": len(fits.mismatched),
                "expected": fits.expected,
            }
            if fits.missing or fits.unexpected:
                found["without_prefix"] = _without_prefix(settings, tensors, len(fits.missing) + len(fits.unexpected))
        except UnknownModel as error:
            found["unknown"] = str(error)[:300]
        yield found


def _lacking(root: Path, left: Sequence[LeftFile], folder: str) -> str:
    """Return which file of the model is not in its folder, by the index, as words; empty when none lacks."""
    present = {file.path for file in left}
    for file in left:
        if folder_of(file.path) == folder and file.path.lower().endswith(".index.json"):
            found = _index(root, file, present, {})
            if found is not None and found["missing_count"]:
                return f"{found['missing'][0]} is missing, so what it holds cannot be compared"
    return ""


def _without_prefix(
    settings: Mapping[str, Any], tensors: Sequence[tuple[str, str, tuple[int, ...]]], before: int
) -> str:
    """Return the wrapper prefix without which most names that did not fit do, or nothing."""
    from rca.experiments.checks.model_class import fit

    for prefix in _WRAPPERS:
        carrying = sum(name.startswith(prefix) for name, _dtype, _shape in tensors)
        if carrying * 10 < 9 * len(tensors):
            continue
        bare = fit(settings, [(name.removeprefix(prefix), dtype, shape) for name, dtype, shape in tensors])
        if len(bare.missing) + len(bare.unexpected) <= before // 10:
            return prefix
    return ""


def _json(root: Path, path: str, most: int) -> Any:
    try:
        with opened(root, path) as stream:
            return json.loads(stream.read(most))
    except (OSError, ValueError, RecursionError):
        return None

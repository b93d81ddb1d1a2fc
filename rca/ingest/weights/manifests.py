"""Checksum manifests (`sha256sum` output) held against the files of the run directory."""

from __future__ import annotations

import hashlib
import stat
from pathlib import PurePosixPath
from typing import Any

import re2

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Place, Source
from rca.ingest.tables.structured import MAX_SETTINGS_FILE, decode, plain_name, read_whole

MAX_HASHED = 1024**3
"""Bytes of the largest file that is hashed; hashing runs at about 1 GB/s."""
MAX_HASHED_ALTOGETHER = 4 * 1024**3
_ALGORITHMS = {32: "md5", 40: "sha1", 64: "sha256", 96: "sha384", 128: "sha512"}
_LINE = re2.compile(r"\\?([0-9a-fA-F]{32,128})\s[ *]?(\S.*)")
_TAGGED = re2.compile(r"(?:MD5|SHA1|SHA256|SHA384|SHA512)\s?\((.+)\)\s?=\s?([0-9a-fA-F]{32,128})")
_MAX_ENTRIES = 5000
_SAMPLE = 20
_NAMES = ("sha256", "sha512", "sha1", "md5", "checksum", "manifest")


class ManifestIngestor:
    """Reads a checksum list and hashes the files it names that lie beside it."""

    name = "checksums"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take text in which every line is a checksum and a file name."""
        lines = [line for line in decode(head).splitlines() if line.strip() and not line.startswith("#")]
        whole = lines if len(head) < 4096 else lines[:-1]
        named = any(word in plain_name(source.path) for word in _NAMES)
        return bool(whole) and all(_entry(line) for line in whole) and (named or len(whole) > 1)

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Compare every listed file. Raises UnreadableSource where no line is a checksum."""
        data, _cut, notes = read_whole(source, context, MAX_SETTINGS_FILE)
        lines = decode(data).splitlines()
        entries = [found for line in lines[:_MAX_ENTRIES] if (found := _entry(line)) is not None]
        if not entries:
            raise UnreadableSource(f"{source.path} holds no checksum.")
        out = EventBuilder(source.path)
        checked = _checked(entries, source)
        out.add(
            kind="artifact",
            name="weights.manifest",
            line=1,
            offset=0,
            severity="error" if checked["mismatched"] or checked["missing"] else "info",
            value=float(len(checked["mismatched"])),
            text=f"{len(checked['mismatched'])} of {checked['compared']} compared files differ from their checksum",
            attrs=checked,
        )
        return Ingested(out.build(), lines=len(lines), bytes=len(data), warnings=notes)


def _entry(line: str) -> tuple[str, str] | None:
    """Return (hexadecimal digest, file name) of one line, or None."""
    text = line.strip()[:1000]
    if (match := _LINE.fullmatch(text)) is not None:
        digest, name = match[1], match[2]
    elif (match := _TAGGED.fullmatch(text)) is not None:
        name, digest = match[1], match[2]
    else:
        return None
    return (digest.lower(), name) if len(digest) in _ALGORITHMS else None


def _checked(entries: list[tuple[str, str]], source: Source) -> dict[str, Any]:
    mismatched: list[str] = []
    missing: list[str] = []
    compared = skipped = hashed = 0
    for digest, name in entries:
        file = _beside(source, name)
        if file is None:
            missing.append(name[:200])
            continue
        size = file.lstat().st_size
        if size > MAX_HASHED or hashed + size > MAX_HASHED_ALTOGETHER:
            skipped += 1
            continue
        hashed += size
        compared += 1
        if _digest(file, _ALGORITHMS[len(digest)]) != digest:
            mismatched.append(name[:200])
    return {
        "entries": len(entries),
        "compared": compared,
        "skipped": skipped,
        "mismatched": mismatched[:_SAMPLE],
        "mismatched_count": len(mismatched),
        "missing": missing[:_SAMPLE],
        "missing_count": len(missing),
    }


def _beside(source: Source, name: str) -> Place | None:
    """Return the listed file where it is a plain file under the manifest's folder; another path counts by its name.

    No link is followed and no path leaves the folder.
    """
    parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in {"/", "."}]
    if not parts or ".." in parts:
        return None
    for tail in (parts, parts[-1:]):
        place = source.file.parent
        for index, part in enumerate(tail):
            place = place / part
            try:
                mode = place.lstat().st_mode
            except (OSError, ValueError):
                break
            if not (stat.S_ISREG(mode) if index == len(tail) - 1 else stat.S_ISDIR(mode)):
                break
        else:
            return place
    return None


def _digest(file: Place, algorithm: str) -> str | None:
    try:
        with file.open("rb") as stream:
            digest = hashlib.new(algorithm, usedforsecurity=False)
            while block := stream.read(1 << 20):
                digest.update(block)
            return digest.hexdigest()
    except OSError:
        return None

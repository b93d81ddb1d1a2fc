"""Files held against the checksums that lie beside them: lists of sha256sum and its like, and the hub's own records."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rca.experiments.checks.files import LeftFile, folder_of, opened, shown

_MOST = 20
_ALGORITHMS = {32: "md5", 40: "sha1", 64: "sha256", 96: "sha384", 128: "sha512"}
_LISTED = re.compile(r"\\?([0-9a-fA-F]{32,128}) [ *]?(\S[^\n]{0,400})")
_TAGGED = re.compile(r"(?:MD5|SHA1|SHA256|SHA384|SHA512) ?\(([^()\n]{1,400})\) ?= ?([0-9a-fA-F]{32,128})")
_MANIFEST = ("sha256", "sha512", "sha1", "md5", "checksum", "manifest")


def compare(root: Path, left: Sequence[LeftFile], budget: int) -> dict[str, Any]:
    """Hash the named files, at most `budget` bytes of them: how many were compared, which differ, which are absent."""
    sizes = {file.path: file.size for file in left}
    compared, skipped = 0, 0
    wrong, absent = [], []
    for source, name, digest in _claims(root, left):
        folder = folder_of(source)
        place = next((path for path in (f"{folder}/{name}" if folder else name, name) if path in sizes), None)
        if place is None:
            absent.append(f"{shown(name)[:200]} ({shown(source)})")
            continue
        if sizes[place] > budget:
            skipped += 1
            continue
        budget -= sizes[place]
        compared += 1
        if _digest(root, place, _ALGORITHMS[len(digest)]) != digest:
            wrong.append(f"{shown(place)} (by {shown(source)})")
    return {
        "compared": compared,
        "skipped": skipped,
        "wrong": wrong[:_MOST],
        "wrong_count": len(wrong),
        "absent": absent[:_MOST],
    }


def _claims(root: Path, left: Sequence[LeftFile]) -> Iterator[tuple[str, str, str]]:
    """Yield (list, file, hexadecimal digest)."""
    for file in left:
        name = file.path.rpartition("/")[2].lower()
        cached = re.fullmatch(r"(.*?)/?\.cache/huggingface/download/(.+)\.metadata", file.path)
        if file.size > 2**20 or not (cached or any(word in name for word in _MANIFEST)):
            continue
        try:
            with opened(root, file.path) as stream:
                text = stream.read(2**20).decode("utf-8", "replace")
        except OSError:
            continue
        lines = text.splitlines()[:5000]
        if cached:
            if len(lines) > 1 and re.fullmatch(r"[0-9a-f]{64}", lines[1]):
                yield f"{cached[1]}/download record" if cached[1] else "download record", cached[2], lines[1]
            continue
        for line in lines:
            match, tagged = _LISTED.fullmatch(line.strip()[:600]), _TAGGED.fullmatch(line.strip()[:600])
            digest, listed = (match[1], match[2]) if match else (tagged[2], tagged[1]) if tagged else ("", "")
            if len(digest) in _ALGORITHMS and ".." not in listed:
                yield file.path, listed.removeprefix("./").strip(), digest.lower()


def _digest(root: Path, path: str, algorithm: str) -> str:
    digest = hashlib.new(algorithm, usedforsecurity=False)
    try:
        with opened(root, path) as stream:
            while piece := stream.read(1 << 20):
                digest.update(piece)
    except OSError:
        return ""
    return digest.hexdigest()

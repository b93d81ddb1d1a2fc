"""The run directory as sources: what is there, what is left out and why, and whose rank or node a path names."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rca.diagnosis import SourceRecord
from rca.ingest.file_names import is_log_name
from rca.ingest.interface import Limits, Place, Source
from rca.ingest.logs.timestamps import first_full_date
from rca.ingest.places.archives import Member, is_archive, members
from rca.ingest.places.content import open_source
from rca.ingest.places.rank_files import with_ranks
from rca.ingest.places.remote import Remote, Root, listing
from rca.ingest.places.shares import with_shares

__all__ = ["discover", "open_source", "path_host", "path_rank"]

_TOOLS = "The folder holds tools or caches, not what the job wrote."
_NOT_OUTPUT = {".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv", "venv", ".ipynb_checkpoints"}
_HEADS, _HEAD = 64, 1 << 16
"""Logs, and bytes of each, that are searched for a complete time."""
_DEPTH = 40
"""Folders below the run directory; deeper trees are cut, no job writes them."""
_ARCHIVE_DEPTH = 15
"""An archive counts as so many folders: an archive in an archive in an archive is not opened."""

_RANK = re.compile(r"(?:^|[/._-])(?:global_?)?(?:rank|task|process|proc)[._-]?(\d{1,6})(?=$|[/._-])", re.I)
_ELASTIC = re.compile(r"(?:^|/)attempt_\d+/(\d{1,5})/(?:std(?:out|err)\.log|error\.json)$")
_SUBMITIT = re.compile(r"(?:^|/)\d{2,}(?:_\d+)?_(\d{1,5})_log\.(?:out|err)$")
_NAMED_HOST = re.compile(
    r"(?:^|[/._-])(?:node\d*|host|dmesg|journal|ibstat|nvidia-smi|syslog|kern)[._-]"
    r"(?P<host>[a-z][a-z0-9]*(?:-[a-z0-9]+)*\d[a-z0-9-]*)(?=$|[/._])",
    re.I,
)
_NUMBERED_HOST = re.compile(r"(?:^|[/._-])(node|host)[._-]?(\d{1,5})(?=$|[/._-])", re.I)


def discover(run_dir: Root, limits: Limits | None = None) -> tuple[list[Source], list[SourceRecord]]:
    """Return the files of a run directory in the order of their paths, and what was left out with the reason.

    Links are never followed: a link into the directory names a file that is read under its own name, and a link out
    of it leads to what the job does not own. An archive (tar, zip) is a folder of its members, and may be the run.
    Raises UsageError for a remote store that does not list the run.
    """
    limits = limits or Limits()
    skipped: list[SourceRecord] = []
    sources: list[Source] = []
    packed = is_archive(run_dir.name) and run_dir.is_file()
    if packed:
        found = _unpacked(run_dir, "", 0, skipped)
    elif isinstance(run_dir, Remote):
        found = _stored(run_dir, skipped)
    else:
        found = _walk(run_dir, run_dir.resolve(), "", 0, skipped)
    for source in found:
        if len(sources) >= limits.files:
            why = f"The directory holds more than {limits.files:,} files; this one and those after it were left out."
            skipped.append(_skip(source.path, why))
            break
        sources.append(source)
    known = _known_time(sources)
    return with_shares(with_ranks([replace(source, known_time=known) for source in sources])), skipped


def _known_time(sources: Sequence[Source]) -> int | None:
    """Return the first complete time at the head of a log of the run; a run that prints none has none."""
    for source in [item for item in sources if is_log_name(item.path)][:_HEADS]:
        try:
            with source.file.open("rb") as file:
                found = first_full_date(file.read(_HEAD))
        except OSError:
            continue
        if found is not None:
            return found
    return None


def path_rank(path: str) -> int | None:
    """Return the rank that a relative path names (`rank_3.log`, `attempt_0/3/stderr.log`), or None."""
    for pattern in (_ELASTIC, _SUBMITIT, _RANK):
        found = pattern.findall(path)
        if found:
            return int(found[-1])
    return None


def path_host(path: str) -> str | None:
    """Return the node that a relative path names (`node_2.out`, `dmesg_gpu-22.txt`), or None."""
    stem = path.rsplit(".", 1)[0] if "." in path.rsplit("/", 1)[-1] else path
    named = _NAMED_HOST.findall(stem)
    if named:
        return str(named[-1])
    numbered = _NUMBERED_HOST.search(stem)
    return f"{numbered[1].lower()}{numbered[2]}" if numbered else None


def _walk(folder: Path, root: Path, prefix: str, depth: int, skipped: list[SourceRecord]) -> Iterator[Source]:
    try:
        with os.scandir(folder) as entries:
            items = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        skipped.append(_skip(prefix or ".", f"The folder cannot be listed: {error.strerror or error}."))
        return
    for item in items:
        path = (f"{prefix}/{item.name}" if prefix else item.name).encode("utf-8", "replace").decode("utf-8")
        try:
            if item.is_symlink():
                skipped.append(_skip(path, _link_reason(Path(item.path), root)))
                continue
            found = item.stat(follow_symlinks=False)
        except OSError as error:
            skipped.append(_skip(path, f"The file cannot be examined: {error.strerror or error}."))
            continue
        if stat.S_ISDIR(found.st_mode):
            if item.name in _NOT_OUTPUT:
                skipped.append(_skip(path, _TOOLS))
            elif depth >= _DEPTH:
                skipped.append(_skip(path, f"Folders more than {_DEPTH} levels deep are not read."))
            else:
                yield from _walk(Path(item.path), root, path, depth + 1, skipped)
        elif stat.S_ISREG(found.st_mode):
            yield from _file(Path(item.path), path, found.st_size, depth, skipped)
        else:
            skipped.append(_skip(path, "It is a device, socket or pipe, not a file."))


def _file(place: Place, path: str, size: int, depth: int, skipped: list[SourceRecord]) -> Iterator[Source]:
    if is_archive(path) and depth < _DEPTH:
        yield from _unpacked(place, path, depth + _ARCHIVE_DEPTH, skipped)
    else:
        yield Source(path=path, file=place, size=size, rank=path_rank(path), host=path_host(path))


def _unpacked(archive: Place, prefix: str, depth: int, skipped: list[SourceRecord]) -> Iterator[Source]:
    """List an archive as a folder, archives in it among them."""
    try:
        listed = members(archive)
    except OSError as error:
        skipped.append(_skip(prefix or archive.name, f"The archive cannot be read: {error.strerror or error}."))
        return
    if listed.damage:
        why = f"The archive was read in part: {listed.damage}. The {len(listed.files):,} files before that were read."
        skipped.append(_skip(prefix or archive.name, why))
    for path, why in listed.left_out.items():
        skipped.append(_skip(f"{prefix}/{path}" if prefix else path, why))
    files = ((path, Member(archive, path), found.size) for path, found in sorted(listed.files.items()))
    yield from _flat(files, prefix, depth, skipped)


def _stored(root: Remote, skipped: list[SourceRecord]) -> Iterator[Source]:
    """List a remote folder."""
    found = listing(root)
    skipped += [_skip(path, why) for path, why in found.left_out.items()]
    yield from _flat(((path, file, file.size or 0) for path, file in found.files.items()), "", 0, skipped)


def _flat(
    files: Iterable[tuple[str, Place, int]], prefix: str, depth: int, skipped: list[SourceRecord]
) -> Iterator[Source]:
    """Go through the files of a listing that knows no folders, only paths."""
    tools: set[str] = set()
    for path, place, size in files:
        parts = path.split("/")[:-1]
        shown = f"{prefix}/{path}" if prefix else path
        tool = next((index for index, part in enumerate(parts) if part in _NOT_OUTPUT), None)
        if tool is not None:
            tools.add("/".join(parts[: tool + 1]))
        elif len(parts) > _DEPTH:
            skipped.append(_skip(shown, f"Folders more than {_DEPTH} levels deep are not read."))
        else:
            yield from _file(place, shown, size, depth, skipped)
    skipped += [_skip(f"{prefix}/{path}" if prefix else path, _TOOLS) for path in sorted(tools)]


def _link_reason(link: Path, root: Path) -> str:
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):
        return "The symbolic link leads nowhere or back to itself."
    if target.is_relative_to(root):
        return f"The symbolic link points to {target.relative_to(root).as_posix()}, which is read under its own name."
    return "The symbolic link leaves the run directory and was not followed."


def _skip(path: str, why: str) -> SourceRecord:
    return SourceRecord(path=path, status="skipped", why=why)

"""Archives of a run (tar, zip, compressed or not) as folders: members are read where they lie, nothing is unpacked."""

from __future__ import annotations

import io
import lzma
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any, Literal, NamedTuple

from rca.errors import UnreadableSource
from rca.ingest.interface import Limits, Place
from rca.ingest.places.content import open_source
from rca.ingest.weights.zip_directory import MAX_DIRECTORY, directory_size

_TAR = (".tar", ".tgz", ".tbz2", ".txz", ".tzst")
_PACKED_TAR = (".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst", ".tar.zstd")
_IN_MEMORY = 64 << 20
_LARGEST_HEADER = 1 << 20
"""Bytes of one header of a tar archive: a name is 100 bytes, an extended header a few hundred."""
_PACKED_AT_LEAST, _PACKED_RATIO = 1 << 30, 200
"""As for compressed files: bytes that any member may have, and how many times its stored size a larger one may have."""
_ALL_AT_LEAST = 4 << 30
"""Bytes that the members of any zip archive may have together."""
_STEP = 1 << 20
_OPEN = 2
"""Archives kept open; members are read one after the other, so one at a time and the one around it are enough."""


class Listed(NamedTuple):
    """One member: a regular file."""

    size: int
    where: Any
    """What reads it: an offset in the tar archive, or the entry of the zip directory."""


class Listing(NamedTuple):
    """What an archive holds."""

    files: Mapping[str, Listed]
    """Regular files by their path, in the order of the archive."""
    left_out: Mapping[str, str]
    """Path and reason of members that are not read."""
    damage: str | None
    """What ended the listing early."""


def is_archive(path: str) -> bool:
    """Say whether a path is called like an archive of files."""
    return path.lower().endswith((*_TAR, *_PACKED_TAR, ".zip"))


def members(archive: Place) -> Listing:
    """List an archive as it is now. Raises OSError where it cannot be opened or is none."""
    _kept.pop(archive, None)
    return _opened(archive).listing


@dataclass(frozen=True)
class Member:
    """A file or folder inside an archive, as a `Place`."""

    archive: Place
    path: str = ""

    @property
    def name(self) -> str:
        """Name of the file, or of the archive for its root."""
        return self.path.rsplit("/", 1)[-1] or self.archive.name

    @property
    def parent(self) -> Place:
        """Folder that holds it; above the root, the folder of the archive."""
        return Member(self.archive, self.path.rpartition("/")[0]) if self.path else self.archive.parent

    def __truediv__(self, name: str, /) -> Member:
        """Return what lies below a folder."""
        return Member(self.archive, f"{self.path}/{name}" if self.path else name)

    def __str__(self) -> str:
        return f"{self.archive}/{self.path}"

    def iterdir(self) -> Iterator[Member]:
        """List a folder."""
        prefix = f"{self.path}/" if self.path else ""
        below = [path[len(prefix) :] for path in _opened(self.archive).listing.files if path.startswith(prefix)]
        return iter([self / name for name in dict.fromkeys(path.split("/", 1)[0] for path in below)])

    def lstat(self) -> MemberEntry:
        """Describe the member. Raises FileNotFoundError where there is none."""
        files = _opened(self.archive).listing.files
        found = files.get(self.path)
        if found is not None:
            return MemberEntry(stat.S_IFREG, found.size)
        if any(path.startswith(f"{self.path}/") for path in files):
            return MemberEntry(stat.S_IFDIR, 0)
        raise FileNotFoundError(f"{self} is not in the archive")

    def open(self, mode: Literal["rb"] = "rb", /) -> IO[bytes]:  # noqa: ARG002 - the mode of every place
        """Open for reading. Raises OSError where the member is gone, damaged, locked or packed in an unknown way."""
        return _opened(self.archive).read(self.path)


class MemberEntry(NamedTuple):
    """Kind and size of a member, as `os.stat` tells them of a file."""

    st_mode: int
    st_size: int


class _Archive:
    """An open archive; its stream is shared by all members, which are read one at a time."""

    def __init__(self, place: Place) -> None:
        self._held = ExitStack()
        try:
            self._stream = self._held.enter_context(open_source(place))
        except UnreadableSource as error:
            raise OSError(str(error)) from error
        self._zip: zipfile.ZipFile | None = None
        if place.name.lower().endswith(".zip"):
            self._zip = _zip(self._stream)
            self.listing = _zip_listing(self._zip, self._stream.seek(0, io.SEEK_END))
        else:
            self.listing = _tar_listing(self._stream)

    def __del__(self) -> None:
        self._held.close()

    def read(self, path: str) -> IO[bytes]:
        found = self.listing.files.get(path)
        if found is None:
            raise FileNotFoundError(f"{path} is not in the archive")
        if self._zip is not None:
            return _unzipped(self._zip, found.where)
        return io.BufferedReader(_Part(self, self._stream, found.where, found.size))


_kept: OrderedDict[Place, _Archive] = OrderedDict()


def _opened(place: Place) -> _Archive:
    """Return an archive that stays open for the next member, since a compressed one is unpacked from its start."""
    found = _kept.pop(place, None) or _Archive(place)
    _kept[place] = found
    while len(_kept) > _OPEN:
        _kept.popitem(last=False)
    return found


def _zip(stream: IO[bytes]) -> zipfile.ZipFile:
    size = stream.seek(0, io.SEEK_END)
    if directory_size(stream, size) > MAX_DIRECTORY:
        raise OSError("the directory of the zip archive is too large")
    try:
        return zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OverflowError, IndexError, struct.error) as error:
        raise OSError(f"the zip archive is damaged or cut off ({error})") from error


def _zip_listing(archive: zipfile.ZipFile, size: int) -> Listing:
    """List the members of an archive of so many bytes, up to where they can only be those of a bomb."""
    files: dict[str, Listed] = {}
    left_out: dict[str, str] = {}
    limit = Limits().files
    most = max(_ALL_AT_LEAST, _PACKED_RATIO * size)
    packed = unpacked = 0
    for entry in archive.infolist():
        packed, unpacked = packed + entry.compress_size, unpacked + entry.file_size
        if packed > size:
            return Listing(files, left_out, "its members overlap")
        if unpacked > most:
            return Listing(files, left_out, f"its members unpack to more than {most:,} bytes")
        if entry.filename.endswith("/"):
            continue
        if len(files) + len(left_out) > limit:
            return Listing(files, left_out, f"it holds more than {limit:,} files")
        path = _inside(entry.filename)
        if path is None:
            left_out[entry.filename] = "The name leads out of the archive."
        elif stat.S_ISLNK(entry.external_attr >> 16):
            left_out[path] = "It is a link inside an archive, which is not followed."
        else:
            files[path] = Listed(entry.file_size, entry)
    return Listing(files, left_out, None)


def _unzipped(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> IO[bytes]:
    """Decompress one member of a zip archive, bounded, so that it can be read from any place."""
    most = min(Limits().source_bytes, max(_PACKED_AT_LEAST, _PACKED_RATIO * entry.compress_size))
    spool = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - the caller closes it
    try:
        with archive.open(entry) as packed:
            while most > 0 and (piece := packed.read(min(_STEP, most))):
                spool.write(piece)
                most -= len(piece)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError) as error:
        if spool.tell() == 0:
            raise OSError(f"the member is damaged ({error})") from error
    except (RuntimeError, NotImplementedError, ValueError, OverflowError) as error:
        raise OSError(f"the member cannot be unpacked ({error})") from error
    spool.seek(0)
    return spool


def _tar_listing(stream: IO[bytes]) -> Listing:
    files: dict[str, Listed] = {}
    left_out: dict[str, str] = {}
    limit = Limits().files
    end = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    behind = 0
    try:
        with tarfile.open(fileobj=_Guarded(stream), mode="r:") as archive:
            while (entry := archive.next()) is not None:
                archive.members.clear()  # type: ignore[attr-defined]  # it would keep all it has seen
                # A header may state a size below zero, and the next header would be one that was read already.
                if entry.size < 0 or entry.offset_data <= behind:
                    raise tarfile.ReadError("a member leads back to an earlier one")
                behind = entry.offset_data
                if entry.isdir():
                    continue
                path = _inside(entry.name)
                if path is None:
                    left_out[entry.name] = "The name leads out of the archive."
                elif not entry.isreg() or entry.issparse():
                    left_out[path] = "It is a link or a device inside an archive, which is not followed."
                elif entry.offset_data + entry.size > end:
                    files[path] = Listed(max(0, end - entry.offset_data), entry.offset_data)
                    return Listing(files, left_out, f"it ends inside {path}")
                else:
                    files[path] = Listed(entry.size, entry.offset_data)
                if len(files) + len(left_out) > limit:
                    return Listing(files, left_out, f"it holds more than {limit:,} files")
    except RecursionError:
        return Listing(files, left_out, "it holds hundreds of headers for one member")
    except (tarfile.TarError, OSError, EOFError, ValueError, OverflowError, zlib.error) as error:
        if not files:
            raise OSError(f"it is no archive, or damaged from its start ({error})") from error
        return Listing(files, left_out, f"it is damaged ({error})")
    return Listing(files, left_out, None)


def _inside(name: str) -> str | None:
    """Return a member's path without `./` and leading slashes; None where it would leave the archive."""
    parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in {"/", "."}]
    return None if ".." in parts or not parts else "/".join(parts)


class _Guarded(io.RawIOBase):
    """A stream that refuses to read a header of unlikely size: what it claims would fill the memory."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _LARGEST_HEADER:
            raise tarfile.ReadError("a header is too large")
        return self._stream.read(size)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()


class _Part(io.RawIOBase):
    """A part of a stream as a file of its own."""

    def __init__(self, owner: _Archive, stream: IO[bytes], start: int, size: int) -> None:
        self._owner = owner
        """Keeps the archive open."""
        self._stream, self._start, self._size = stream, start, size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), max(0, self._size - self._at))
        self._stream.seek(self._start + self._at)
        data = self._stream.read(wanted)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

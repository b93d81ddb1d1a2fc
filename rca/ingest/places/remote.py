"""Run directories that lie in a remote store (s3://, gs://, hdfs://, memory://): any that fsspec opens.

Few and large requests: a run is listed in one go, a small object is fetched once, and of a large one the parts that are
read, more at a time the longer they are read one after the other. Whatever a store raises becomes an OSError with a
sentence, and none tells a password or a signed address.
"""

from __future__ import annotations

import io
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from rca.errors import UsageError
from rca.ingest.interface import Limits

FIRST = 1 << 16
"""Bytes of the first request to an object, which are kept: most logs are small, and every reader asks for the head."""
_HEADS = 256
"""Objects whose first bytes are kept, 16 MiB altogether."""
_AHEAD, _FURTHEST = 1 << 17, 1 << 23
"""Bytes fetched at once after a jump; twice as many after every one read to its end, up to 8 MiB."""
_FOLDERS = 64

_URL = re.compile(r"[a-z][a-z0-9+.-]*(?:::[a-z][a-z0-9+.-]*)*://", re.I)
_USER = re.compile(r"//[^/@\s]{1,1000}@")
_QUERY = re.compile(r"\?[^\s\"'<>]{1,10000}")
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs"}
_OF_THIS_PROCESS = "memory"


class RemoteEntry(NamedTuple):
    """Kind and size of an object, as `os.stat` tells them of a file."""

    st_mode: int
    st_size: int


@dataclass(frozen=True)
class Remote:
    """An object or a folder of a remote store, as a `Place`."""

    fs: Any = field(repr=False)
    """The file system of fsspec."""
    path: str = field(repr=False)
    """As that file system calls it; may hold a password, so it is never shown."""
    size: int | None = None
    """Bytes, where the listing told them."""
    version: str = ""
    """What changes with the content, where the listing told it."""

    @property
    def name(self) -> str:
        """Name of the object."""
        return _without_secrets(self.path).rstrip("/").rpartition("/")[2]

    @property
    def parent(self) -> Remote:
        """Folder that holds it."""
        return Remote(self.fs, self.path.rstrip("/").rpartition("/")[0])

    def is_file(self) -> bool:
        """Whether there is an object of that name."""
        try:
            return stat.S_ISREG(self.lstat().st_mode)
        except OSError:
            return False

    @property
    def shared(self) -> bool:
        """Whether another process finds the same here."""
        return _OF_THIS_PROCESS not in _protocols(self.fs)

    def __truediv__(self, name: str, /) -> Remote:
        """Return what lies below a folder."""
        return Remote(self.fs, f"{self.path.rstrip('/')}/{name}")

    def __str__(self) -> str:
        """Address without user, password and signature."""
        return _without_secrets(str(self.fs.unstrip_protocol(self.path)))

    def iterdir(self) -> Iterator[Remote]:
        """List a folder."""
        return iter([self / name for name in _folder(self.fs, self.path)])

    def lstat(self) -> RemoteEntry:
        """Describe the object; one request for all of a folder. Raises FileNotFoundError where there is none."""
        if self.size is not None:
            return RemoteEntry(stat.S_IFREG, self.size)
        found = _folder(self.fs, self.parent.path).get(self.name)
        if found is None:
            raise FileNotFoundError(f"{self} does not exist")
        return found

    def open(self, mode: Literal["rb"] = "rb", /) -> IO[bytes]:  # noqa: ARG002 - the mode of every place
        """Open for reading, as a stream that can seek."""
        sized = self if self.size is not None else replace(self, size=self.lstat().st_size)
        return io.BufferedReader(_Parts(sized), buffer_size=FIRST)


Root = Path | Remote
"""A run directory: a folder or an archive, on this machine or in a remote store."""


class Listing(NamedTuple):
    """What lies below a remote folder."""

    files: Mapping[str, Remote]
    """Objects by their path below the folder, in the order in which a local folder is listed."""
    left_out: Mapping[str, str]
    """Path and reason of objects that are not read."""


def run_place(run_dir: Any) -> Root:
    """Return where a run lies: a path, a URL that fsspec opens, or a UPath.

    Raises UsageError for an address that names no store, or one that needs a package that is not installed.
    """
    if isinstance(run_dir, (Path, Remote)):
        return run_dir
    if hasattr(run_dir, "fs") and hasattr(run_dir, "path"):
        return Remote(run_dir.fs, str(run_dir.path))
    text = str(run_dir)
    if _URL.match(text) is None:
        return Path(text)
    return _remote(text)


def _remote(url: str) -> Root:
    import fsspec

    protocol = url.split(":", 1)[0].lower()
    shown = _without_secrets(url)
    try:
        fs, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        extra = _EXTRAS.get(protocol)
        how = f"pip install 'rca-dl[{extra}]'" if extra else _without_secrets(str(error))
        raise UsageError(f"{shown} needs a package that is not installed: {how}") from error
    except Exception as error:  # a store is a plug-in: what it raises for a wrong address is its own
        raise UsageError(f"{shown} cannot be used as an address: {_reason(error)}") from error
    if "file" in _protocols(fs) and "::" not in url:
        return Path(path)
    return Remote(fs, path)


def listing(root: Remote) -> Listing:
    """List all objects below a folder with their sizes, in one go. Raises UsageError where that cannot be done."""
    forget()
    try:
        with _answering():
            root.fs.invalidate_cache()
            found = root.fs.find(root.path, detail=True)
    except OSError as error:
        raise UsageError(f"{root} cannot be read: {error.strerror or error}") from error
    if not found:
        raise UsageError(f"{root} holds nothing or does not exist; give the folder that holds the logs of the run")
    if set(found) == {root.path}:
        raise UsageError(f"{root} is neither a folder nor an archive; give the folder that holds the logs of the run")
    prefix = f"{root.path.rstrip('/')}/"
    files: dict[str, Remote] = {}
    left_out: dict[str, str] = {}
    for name, info in found.items():
        path = name[len(prefix) :]
        if not name.startswith(prefix) or not path or path.endswith("/") or info.get("type", "file") != "file":
            continue
        parts = [part for part in path.split("/") if part not in {"", "."}]
        if ".." in parts:
            left_out[path] = "The name leads out of the run directory."
        elif not isinstance(info.get("size"), int):
            left_out[path] = "The store does not tell how large the object is."
        else:
            files["/".join(parts)] = Remote(root.fs, name, info["size"], _version(info))
    return Listing(dict(sorted(files.items(), key=lambda item: item[0].split("/"))), left_out)


def forget() -> None:
    """Drop what was kept of objects that may have changed since."""
    _head.cache_clear()
    _folder.cache_clear()


class _Parts(io.RawIOBase):
    """One object, fetched in parts."""

    def __init__(self, place: Remote) -> None:
        self._place = place
        self._size = place.size or 0
        self._at = 0
        self._left = memoryview(b"")
        """Fetched bytes from the position on."""
        self._ahead = _AHEAD
        self._copy: IO[bytes] | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        target = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if target < 0:
            raise ValueError("negative seek position")
        if target != self._at:
            self._at, self._left, self._ahead = target, memoryview(b""), _AHEAD
        return target

    def readinto(self, buffer: Any, /) -> int:
        wanted = memoryview(buffer).cast("B")
        if not self._left:
            self._left = self._fetched(len(wanted))
        count = min(len(wanted), len(self._left))
        wanted[:count] = self._left[:count]
        self._at += count
        rest = self._left[count:]
        # A short rest must not keep the large part alive that it was cut from.
        self._left = rest if len(rest) >= count else memoryview(bytes(rest))
        return count

    def fileno(self) -> int:
        """Return the number of a local copy, which is made for whoever maps a file, as far as one is read at most."""
        if self._copy is None:
            copy = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the stream
            self._copy = copy
            most = min(self._size, Limits().source_bytes)
            for start in range(0, most, _FURTHEST):
                copy.write(_part(self._place, start, min(start + _FURTHEST, most)))
            copy.flush()
        return self._copy.fileno()

    def close(self) -> None:
        if self._copy is not None:
            self._copy.close()
        super().close()

    def _fetched(self, wanted: int) -> memoryview:
        if self._at >= self._size:
            return memoryview(b"")
        if self._at < FIRST:
            return memoryview(_head(self._place))[self._at :]
        stop = self._at + max(wanted, self._ahead)
        self._ahead = min(2 * self._ahead, _FURTHEST)
        return memoryview(_part(self._place, self._at, self._size if self._size - stop < _AHEAD else stop))


@lru_cache(maxsize=_HEADS)
def _head(place: Remote) -> bytes:
    return _part(place, 0, min(FIRST, place.size or 0))


def _part(place: Remote, start: int, stop: int) -> bytes:
    with _answering():
        found: bytes = place.fs.cat_file(place.path, start=start, end=stop)
    if len(found) > stop - start:
        raise OSError("the store does not give parts of an object")
    return found


@lru_cache(maxsize=_FOLDERS)
def _folder(fs: Any, path: str) -> Mapping[str, RemoteEntry]:
    """Kind and size of what lies in a folder, by name."""
    with _answering():
        found = fs.ls(path, detail=True)
    entries = {}
    for info in found:
        name = str(info["name"]).rstrip("/").rpartition("/")[2]
        kind = stat.S_IFDIR if info.get("type") == "directory" else stat.S_IFREG
        entries[name] = RemoteEntry(kind, info.get("size") or 0)
    return entries


@contextmanager
def _answering() -> Iterator[None]:
    """Say of whatever a store raises what it means, as an OSError."""
    try:
        yield
    except Exception as error:  # a store is a plug-in, and each raises errors of its own beside OSError
        kind = type(error) if isinstance(error, OSError) else OSError
        raise kind(getattr(error, "errno", None) or 5, _reason(error)) from error


def _reason(error: BaseException) -> str:
    name = type(error).__name__
    if isinstance(error, FileNotFoundError):
        return "it does not exist"
    if isinstance(error, PermissionError):
        return "access was denied; give credentials that may list and read it"
    if "Credential" in name:
        return "no credentials were found, or they are not complete; give them as the client of the store expects them"
    if isinstance(error, (TimeoutError, ConnectionError)) or re.search("Timeout|Connect|Endpoint", name):
        return f"the store does not answer ({name})"
    return _without_secrets(" ".join(f"{name}: {error}".split()))[:300].strip(": ")


def _without_secrets(text: str) -> str:
    """`text` without users and passwords, and without queries, which hold signatures."""
    return _QUERY.sub("", _USER.sub("//", text))


def _protocols(fs: Any) -> tuple[str, ...]:
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


def _version(info: Mapping[str, Any]) -> str:
    keys = ("ETag", "etag", "generation", "md5Hash", "LastModified", "mtime", "modified", "updated", "created")
    return next((str(info[key]) for key in keys if info.get(key) is not None), "")

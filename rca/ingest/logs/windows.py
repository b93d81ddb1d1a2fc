"""The bytes of a log of any size, a few windows of it in memory at a time.

A mapped file would count as memory of the process and end it with a signal where the file is cut short meanwhile; and a
place in an archive or a remote store cannot be mapped at all.
"""

from __future__ import annotations

import tempfile
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import IO, NamedTuple, overload

from rca.errors import UnreadableSource
from rca.ingest.interface import Limits, Source
from rca.ingest.places.content import IN_MEMORY, opening_reason, packed, unpack

_PAGE = 1 << 20
_PAGES = 8


class Windows:
    """Bytes that are read when they are looked at: sliced and searched like `bytes`.

    Of a file larger than `most`, the beginning and the end are there, half each: what ends a job stands at the end. A
    file that was cut short since it was opened reads as empty lines from there on, and `problems` tells.
    """

    def __init__(self, file: IO[bytes], *, most: int | None = None) -> None:
        self._file = file
        self._stored = file.seek(0, 2)
        self._size = self._stored if most is None else min(self._stored, most)
        self._head = self._size if self._size == self._stored else (self._size + 1) // 2
        self._pages: OrderedDict[int, bytes] = OrderedDict()
        self._short = False

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, key: int) -> int: ...

    @overload
    def __getitem__(self, key: slice) -> bytes: ...

    def __getitem__(self, key: int | slice) -> int | bytes:
        if isinstance(key, int):
            place = key + self._size if key < 0 else key
            return self[place : place + 1][0]
        start, stop, _ = key.indices(self._size)
        if stop <= start:
            return b""
        if stop - start > _PAGE:
            return self._read(start, stop)
        first, last = start // _PAGE, (stop - 1) // _PAGE
        pieces = b"".join(self._page(number) for number in range(first, last + 1))
        return pieces[start - first * _PAGE : stop - first * _PAGE]

    def find(self, what: bytes, start: int = 0, stop: int | None = None) -> int:
        """Return where the bytes are found first, or -1."""
        end = self._size if stop is None else min(stop, self._size)
        while start < end:
            found = self[start : min(start + _PAGE, end)].find(what)
            if found >= 0:
                return start + found
            start += _PAGE - len(what) + 1
        return -1

    def place(self, offset: int) -> int:
        """Return the offset in the stored file."""
        return offset if offset < self._head else offset + self._stored - self._size

    @property
    def gap(self) -> int:
        """Offset from which on the bytes are those of the end of the file; the size where nothing is left out."""
        return self._head

    def close(self) -> None:
        """Let the bytes in memory go: of thousands of logs, what a cycle of references keeps alive would add up."""
        self._pages.clear()

    def problems(self) -> list[str]:
        """Return what was left out or changed meanwhile, one sentence each."""
        told = []
        if self._size < self._stored:
            told.append(
                f"Only the first {self._head:,} and the last {self._size - self._head:,} of {self._stored:,} bytes "
                "were read; line numbers behind the gap count the lines that were read."
            )
        now = self._file.seek(0, 2)
        if self._short or now < self._stored:
            told.append(f"The file was cut short while it was read: {self._stored:,} bytes before, {now:,} now.")
        elif now > self._stored:
            told.append(
                f"The file grew while it was read; its last {now - self._stored:,} bytes are not in the report."
            )
        return told

    def _page(self, number: int) -> bytes:
        page = self._pages.get(number)
        if page is None:
            page = self._pages[number] = self._read(number * _PAGE, min((number + 1) * _PAGE, self._size))
            if len(self._pages) > _PAGES:
                self._pages.popitem(last=False)
        return page

    def _read(self, start: int, stop: int) -> bytes:
        if start < self._head < stop:
            return self._read(start, self._head) + self._read(self._head, stop)
        self._file.seek(self.place(start))
        data = self._file.read(stop - start)
        while len(data) < stop - start:
            more = self._file.read(stop - start - len(data))
            if not more:
                self._short = True
                return data + b"\n" * (stop - start - len(data))
            data += more
        return data


class Opened(NamedTuple):
    """A log as windows, and what was lost when it was unpacked."""

    data: Windows
    warnings: tuple[str, ...]


@contextmanager
def open_windows(source: Source, limits: Limits) -> Iterator[Opened]:
    """Give the bytes of a log, decompressed and as UTF-8 as `open_content` does, whatever their number.

    Of a plain file at most `limits.plain_bytes` are kept, its beginning and its end; of another `limits.source_bytes`.
    Raises UnreadableSource when the file cannot be opened, or fails while it is read.
    """
    try:
        with source.file.open("rb") as file:
            if not packed(file):
                most = limits.source_bytes if limits.source_bytes < Limits.source_bytes else limits.plain_bytes
                with closing(Windows(file, most=most)) as data:
                    yield Opened(data, ())
                return
            with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY // 4) as spool:
                warnings = unpack(file, spool, limits)
                with closing(Windows(spool)) as data:
                    yield Opened(data, warnings)
    except OSError as error:
        raise UnreadableSource(opening_reason(source.file, error)) from error

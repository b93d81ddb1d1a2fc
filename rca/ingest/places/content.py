"""The bytes of one source: decompressed, transcoded to UTF-8, bounded, and cheap to index."""

from __future__ import annotations

import bz2
import codecs
import lzma
import mmap
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple

from rca.errors import UnreadableSource
from rca.ingest.interface import Limits, Place, Source

HEAD_BYTES = 4096
"""Decompressed bytes that every reader sees before it says whether a file is for it."""

_STEP = 1 << 20
IN_MEMORY = 64 << 20
"""Up to this size a file is read instead of mapped: a mapped file that shrinks while we read would kill the process."""

_PACKED_AT_LEAST, _PACKED_RATIO = 1 << 30, 200
"""Decompressed bytes that any source may have, and how many times its size a larger one may have: logs shrink 10 to 50
times, so what unpacks to gigabytes of almost nothing is a bomb and would fill the disk."""

_GZIP, _BZIP2, _XZ, _ZSTD = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
_WIDE = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

Buffer = bytes | mmap.mmap


class Content(NamedTuple):
    """All bytes of one source that were read, and what was lost on the way."""

    data: Buffer
    warnings: tuple[str, ...] = ()


def read_head(source: Source) -> bytes:
    """Return the first `HEAD_BYTES` decompressed bytes. Raises UnreadableSource when the file cannot be opened."""
    try:
        with source.file.open("rb") as file:
            pieces, _ = _pieces(file, HEAD_BYTES, step=HEAD_BYTES)
            head = b""
            for piece in pieces:
                head += piece
                if len(head) >= HEAD_BYTES:
                    break
            return head[:HEAD_BYTES]
    except OSError as error:
        raise UnreadableSource(opening_reason(source.file, error)) from error


@contextmanager
def open_content(source: Source, limits: Limits) -> Iterator[Content]:
    """Give all bytes of a source, decompressed (gzip, bzip2, xz, zstd) and as UTF-8 where it was UTF-16 or UTF-32.

    At most `limits.source_bytes` are kept. A stream that ends too early keeps what was read and says so.
    Raises UnreadableSource when the file cannot be opened or nothing of it can be decompressed.
    """
    try:
        with source.file.open("rb") as file:
            if not packed(file):
                with _plain(file, limits) as content:
                    yield content
                return
            with _unpacked(file, limits) as (spool, warnings):
                size = spool.seek(0, 2)
                spool.seek(0)
                if size <= IN_MEMORY:
                    yield Content(spool.read(), warnings)
                    return
                with mmap.mmap(spool.fileno(), size, access=mmap.ACCESS_READ) as mapped:
                    yield Content(mapped, warnings)
    except OSError as error:
        raise UnreadableSource(opening_reason(source.file, error)) from error


@contextmanager
def open_stream(source: Source, limits: Limits) -> Iterator[tuple[IO[bytes], tuple[str, ...]]]:
    """Give the same bytes to whoever reads them once from start to end, and what was lost in unpacking them.

    Nothing is mapped: a file that shrinks meanwhile ends earlier, and its pages do not count as memory of ours.
    The caller reads no more than `limits.source_bytes`. Raises UnreadableSource as `open_content` does.
    """
    try:
        with source.file.open("rb") as file:
            if not packed(file):
                yield file, ()
                return
            with _unpacked(file, limits) as unpacked:
                yield unpacked
    except OSError as error:
        raise UnreadableSource(opening_reason(source.file, error)) from error


def give_back(data: Buffer, until: int) -> None:
    """Let the system take back the pages of a mapped file up to a byte; they are read again where they are needed."""
    if isinstance(data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        data.madvise(mmap.MADV_DONTNEED, 0, until // mmap.PAGESIZE * mmap.PAGESIZE)


@contextmanager
def open_source(file: Place, limits: Limits | None = None) -> Iterator[IO[bytes]]:
    """Give the same bytes as a stream that can seek, so that places in the event table can be read again.

    Raises OSError as `open` does.
    """
    with file.open("rb") as stream:
        if not packed(stream):
            yield stream
            return
        with _unpacked(stream, limits or Limits()) as (spool, _lost):
            yield spool


@contextmanager
def _unpacked(file: IO[bytes], limits: Limits) -> Iterator[tuple[IO[bytes], tuple[str, ...]]]:
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as spool:
        warnings = unpack(file, spool, limits)
        spool.seek(0)
        yield spool, warnings


@contextmanager
def _plain(file: IO[bytes], limits: Limits) -> Iterator[Content]:
    size = file.seek(0, 2)
    file.seek(0)
    kept = min(size, limits.source_bytes)
    warnings = () if kept == size else (f"Only the first {kept:,} of {size:,} bytes were read.",)
    if kept <= IN_MEMORY:
        yield Content(file.read(kept), warnings)
        return
    with mmap.mmap(file.fileno(), kept, access=mmap.ACCESS_READ) as mapped:
        yield Content(mapped, warnings)


def unpack(file: IO[bytes], spool: IO[bytes], limits: Limits) -> tuple[str, ...]:
    """Write the decompressed and transcoded bytes; return what was lost."""
    packed = file.seek(0, 2)
    file.seek(0)
    most = limits.source_bytes
    if _codec(file.read(6)) is not None:
        most = min(most, max(_PACKED_AT_LEAST, _PACKED_RATIO * packed))
    file.seek(0)
    pieces, problems = _pieces(file, most, step=_STEP)
    decoder: codecs.IncrementalDecoder | None = None
    total = 0
    for index, piece in enumerate(pieces):
        plain = piece
        if index == 0:
            wide = _wide(piece)
            if wide is not None:
                decoder = codecs.getincrementaldecoder(wide)(errors="replace")
        if decoder is not None:
            plain = decoder.decode(piece).encode("utf-8", "replace")
        total += len(piece)
        spool.write(plain)
    if problems and total == 0:
        raise UnreadableSource(problems[0])
    return tuple(problems)


def packed(file: IO[bytes]) -> bool:
    """Say whether a file is compressed or UTF-16 or UTF-32, so that what it says must be unpacked first."""
    start = file.read(6)
    file.seek(0)
    return _codec(start) is not None or _wide(start) is not None


def _codec(start: bytes) -> str | None:
    for magic, name in ((_GZIP, "gzip"), (_BZIP2, "bzip2"), (_XZ, "xz"), (_ZSTD, "zstd")):
        if start.startswith(magic):
            return name
    return None


def _wide(start: bytes) -> str | None:
    return next((name for mark, name in _WIDE if start.startswith(mark)), None)


def _pieces(file: IO[bytes], most: int, *, step: int) -> tuple[Iterator[bytes], list[str]]:
    """Iterate over at most `most` decompressed bytes; the list fills with what went wrong while iterating."""
    problems: list[str] = []
    codec = _codec(file.read(6))
    file.seek(0)
    if codec is None:
        raw = iter(lambda: file.read(step), b"")
    elif codec == "zstd":
        raw = _zstd(file, min(step, 1 << 16), problems)
    else:
        raw = _streams(file, codec, step, problems)
    return _bounded(raw, most, problems), problems


def _bounded(pieces: Iterator[bytes], most: int, problems: list[str]) -> Iterator[bytes]:
    left = most
    for piece in pieces:
        if len(piece) > left:
            if left:
                yield piece[:left]
            problems.append(f"Only the first {most:,} decompressed bytes were read.")
            return
        left -= len(piece)
        yield piece


def _streams(file: IO[bytes], codec: str, step: int, problems: list[str]) -> Iterator[bytes]:
    """Decompress gzip, bzip2 or xz, members one after the other, never more than `step` bytes at a time."""
    engine = _engine(codec)
    pending = b""
    total = 0
    while True:
        if not pending:
            pending = file.read(1 << 16)
            if not pending:
                problems.append(f"The {codec} stream ends too early; {total:,} bytes were kept.")
                return
        try:
            plain = engine.decompress(pending, step)
        except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError) as error:
            problems.append(f"The {codec} stream is damaged ({error}); {total:,} bytes were kept.")
            return
        pending = engine.unconsumed_tail if codec == "gzip" else b""
        total += len(plain)
        if plain:
            yield plain
        while codec != "gzip" and not engine.eof and not engine.needs_input:
            try:
                plain = engine.decompress(b"", step)
            except (lzma.LZMAError, OSError, EOFError, ValueError) as error:
                problems.append(f"The {codec} stream is damaged ({error}); {total:,} bytes were kept.")
                return
            total += len(plain)
            if plain:
                yield plain
        if engine.eof:
            pending = (engine.unused_data or file.read(1 << 16)).lstrip(b"\0")
            if not pending:
                return
            engine = _engine(codec)


def _engine(codec: str):  # type: ignore[no-untyped-def]  # three unrelated classes with one shape
    if codec == "gzip":
        return zlib.decompressobj(wbits=31)
    return bz2.BZ2Decompressor() if codec == "bzip2" else lzma.LZMADecompressor()


def _zstd(file: IO[bytes], step: int, problems: list[str]) -> Iterator[bytes]:
    """Decompress zstd with the codec that Arrow carries; small steps, so that a damaged end costs little."""
    import pyarrow as pa

    total = 0
    stream = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")
    while True:
        try:
            plain = stream.read(step)
        except (OSError, ValueError) as error:
            problems.append(f"The zstd stream is damaged or ends too early ({error}); {total:,} bytes were kept.")
            return
        if not plain:
            return
        total += len(plain)
        yield plain


def opening_reason(file: Place, error: OSError) -> str:
    """Say why a file could not be opened."""
    text = error.strerror or str(error)
    return f"{file.name} cannot be opened: {text}."

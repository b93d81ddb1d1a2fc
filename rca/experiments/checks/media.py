"""Images and sound as files: does each begin and end as its format says? Nothing is decoded."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

from rca.experiments.checks.files import LeftFile, is_media_file, listing, opened, shown

_HEAD, _TAIL = 64 * 1024, 64 * 1024
_STARTS = {
    ".png": (b"\x89PNG\r\n\x1a\n",),
    ".jpg": (b"\xff\xd8\xff",),
    ".jpeg": (b"\xff\xd8\xff",),
    ".gif": (b"GIF87a", b"GIF89a"),
    ".bmp": (b"BM",),
    ".tif": (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
    ".tiff": (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
    ".webp": (b"RIFF",),
    ".wav": (b"RIFF", b"RIFX", b"RF64"),
    ".flac": (b"fLaC", b"ID3"),
    ".ogg": (b"OggS",),
}
"""First bytes of each format; readers go by them, so an image under the name of another format is no damage."""
_ENDS = {b"\x89PNG": b"IEND\xaeB`\x82", b"\xff\xd8\xff": b"\xff\xd9"}
"""What the last part of a whole PNG or JPEG holds, by its first bytes."""
_STREAMED = 0x7FFFFFFF
"""Sizes from here on mean that the writer did not know the length."""
_MOST = 20


class Media(NamedTuple):
    """The image and sound files of a folder."""

    files: int
    bad: tuple[tuple[str, str], ...]
    """(file, what is wrong), at most twenty."""
    damaged: int


def read_media(root: Path, *, named: bool) -> Media:
    """Look at the beginning and the end of every image and sound file below `root`."""
    bad: list[tuple[str, str]] = []
    count = 0
    for file in listing(root).files:
        if is_media_file(file.path, named=named):
            count += 1
            wrong = _problem(root, file)
            if wrong:
                bad.append((shown(file.path), wrong))
    return Media(count, tuple(bad[:_MOST]), len(bad))


def _problem(root: Path, file: LeftFile) -> str:
    suffix = Path(file.path).suffix.lower()
    try:
        with opened(root, file.path) as stream:
            head = stream.read(_HEAD)
            tail = head if file.size <= _HEAD else _last(stream, file.size)
    except OSError as error:
        return f"cannot be opened ({error.strerror or error})"
    if not head:
        return "is empty"
    if not any(head):
        return "holds zeros only"
    if head.lstrip()[:1] == b"<" or head.startswith(b"version https://git-lfs"):
        return "is text (a web page or a pointer), not the file"
    known = [start for starts in _STARTS.values() for start in starts]
    if suffix in _STARTS and not head.startswith(tuple(known)):
        return f"does not begin like {suffix[1:]} or another format of images or sound"
    end = next((end for start, end in _ENDS.items() if head.startswith(start)), None)
    if end is not None and end not in tail:
        return "is cut off: the mark of its end is missing"
    return _sound_problem(head, file.size) if head[:4] == b"RIFF" and head[8:12] == b"WAVE" else ""


def _last(stream: BinaryIO, size: int) -> bytes:
    stream.seek(max(0, size - _TAIL))
    return stream.read(_TAIL)


def _sound_problem(head: bytes, size: int) -> str:
    place = 12
    while place + 8 <= len(head):
        name, length = head[place : place + 4], struct.unpack("<I", head[place + 4 : place + 8])[0]
        if name == b"data":
            if size <= place + 8:
                return "holds a header and no sound"
            if length < _STREAMED and place + 8 + length > size:
                return f"is cut off: {size - place - 8:,} of {length:,} bytes of sound"
            return ""
        place += 8 + length + length % 2
    return ""

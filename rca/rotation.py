"""Logs that were rotated or split: which files are one log, and in which order it was written."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

_PACKED = re.compile(r"\.(?:gz|xz|bz2|zst|lz4)$")
_DATE = r"(?:19|20)\d\d-?[01]\d-?[0-3]\d(?:[-_T.]?[0-2]\d[-:]?[0-5]\d(?:[-:]?[0-5]\d)?(?:[_.]\d{1,6})?)?(?:-1\d{9})?"
_NUMBERED = re.compile(r"(?P<base>.*)\.(?P<number>\d{1,5})$")
_DATED = re.compile(rf"(?P<base>.*?)[.-](?P<date>{_DATE})$")
_INSIDE = re.compile(rf"(?P<stem>.*?)\.(?P<date>{_DATE})(?P<ending>\.[a-z]{{2,6}})$")
_LONGEST = 255
"""Characters of a file name that file systems allow."""
_NEWEST = (1, 0, "")


class Part(NamedTuple):
    """Where a file stands in the log that it is a part of."""

    log: str
    """Path of the log without what the rotation added."""
    order: tuple[int, int, str]
    """Ascending from the oldest part to the newest."""
    certain: bool
    """The log itself lies beside its older parts, so that the names alone tell the order."""


def parts_of(paths: Iterable[str]) -> Mapping[str, Part]:
    """Return the place of every path that is a part of a log of several files.

    `train.log`, `train.log.1`, `train.log.2.gz`: a higher number is older, as logrotate and Python's handlers count.
    `part.log.000`, `part.log.001`: numbers with leading zeros count upwards, as `split` writes them.
    `train.log-20261101`, `train.log.2026-11-01`, `train.2026-11-01_10-00-00_000001.log` (loguru): by their dates.
    """
    families: dict[str, dict[str, tuple[tuple[int, int, str], bool]]] = defaultdict(dict)
    plain: dict[str, str] = {}
    for path in paths:
        bare = _PACKED.sub("", path)
        found = _suffix(bare)
        if found is None:
            plain[bare] = path
        else:
            families[found[0]][path] = found[1:]
    known: dict[str, Part] = {}
    for log, members in families.items():
        newest = plain.get(log)
        if len(members) + (newest is not None) < 2:
            continue
        for path, (order, padded) in members.items():
            # With the log itself beside them even `log.01` is the part before it.
            upwards = padded and newest is None
            known[path] = Part(log, (0, order[1] if upwards else -order[1], order[2]), newest is not None)
        if newest is not None:
            known[newest] = Part(log, _NEWEST, certain=True)
    return known


def _suffix(path: str) -> tuple[str, tuple[int, int, str], bool] | None:
    """Return the log, number and date of a rotated part, and whether the number counts upwards."""
    folder, slash, name = path.rpartition("/")
    if len(name) > _LONGEST or not name[-1:].isalnum():
        return None
    log, order, padded = name, (0, 0, ""), False
    if dated := _DATED.match(name):
        log, order = dated["base"], (0, 0, _digits(dated["date"]))
    elif inside := _INSIDE.match(name):
        log, order = inside["stem"] + inside["ending"], (0, 0, _digits(inside["date"]))
    elif numbered := _NUMBERED.match(name):
        text = numbered["number"]
        log, order, padded = numbered["base"], (0, int(text), ""), len(text) > 1 and text.startswith("0")
    # `0.log.1` is a part of a log, `1.2` and `v1.3` are a number and a version.
    if log == name or not any(char.isalpha() for char in log) or ("." not in log and log != "log"):
        return None
    return folder + slash + log, order, padded


def _digits(date: str) -> str:
    return re.sub(r"\D", "", date)

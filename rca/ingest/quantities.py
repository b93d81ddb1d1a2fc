"""Numbers with units as logs print them."""

from __future__ import annotations

import re

_SIZE = re.compile(r"\s*([-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?)\s*([kmgtp]?)(i?)(b(?:ytes?)?)?\b", re.I)
_NUMBER = re.compile(r"\s*([-+]?(?:[\d,]*\.?\d+(?:e[-+]?\d+)?|nan|inf(?:inity)?))", re.I)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "millisecond": 1e-3,
    "milliseconds": 1e-3,
    "": 1.0,
    "s": 1.0,
    "sec": 1.0,
    "secs": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "m": 60.0,
    "min": 60.0,
    "mins": 60.0,
    "minute": 60.0,
    "minutes": 60.0,
    "h": 3600.0,
    "hr": 3600.0,
    "hour": 3600.0,
    "hours": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
    "days": 86400.0,
}
_DURATION = re.compile(r"\s*([\d,]*\.?\d+(?:e[-+]?\d+)?)\s*([a-zµ]*)", re.I)
_CLOCK = re.compile(r"\s*(?:(\d+)-)?(?:(\d+):)?(\d{1,2}):(\d{2}(?:\.\d+)?)\s*$")


def number(text: str) -> float | None:
    """Return a number as printed (`12,645`, `1.2E+01`, `nan`, `-inf`), or None."""
    found = _NUMBER.match(text)
    return None if found is None else float(found[1].replace(",", ""))


def size_bytes(text: str) -> int | None:
    """Return `2.50 GiB`, `512 MB`, `81920 kB`, `39.1G` or a plain number in bytes, powers of 1024; None if neither."""
    found = _SIZE.match(text)
    if found is None:
        return None
    return round(float(found[1].replace(",", "")) * 1024.0 ** _POWERS[found[2].lower()])


def seconds(text: str) -> float | None:
    """Return `600000 ms`, `10 min`, `1:02:03`, `1-06:00:00` or a plain number in seconds; None if neither."""
    found = _CLOCK.match(text)
    if found is not None:
        days, hours, minutes, rest = found.groups()
        return int(days or 0) * 86400.0 + int(hours or 0) * 3600.0 + int(minutes) * 60.0 + float(rest)
    total = 0.0
    position = 0
    matched = False
    while (found := _DURATION.match(text, position)) is not None and found[2].lower() in _SECONDS:
        total += float(found[1].replace(",", "")) * _SECONDS[found[2].lower()]
        position = found.end()
        matched = True
    return total if matched else None

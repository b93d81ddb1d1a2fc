"""One cell of a table or one JSON value as a number, read strictly: the whole cell or nothing."""

from __future__ import annotations

import math
import re
from typing import Any

from rca.ingest.quantities import size_bytes

_LONGEST = 64
_MOST_DIGITS = 15
_NUMBER = re.compile(r"\s*([-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*([^\s0-9,.]{0,12})\s*")
_THOUSANDS = re.compile(r"[-+]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?")
_SIZE = re.compile(r"\s*[0-9]{1,20}(?:\.[0-9]{1,12})?\s*[kKmMgGtTpP]?(?:i?[bB]?|ytes|bytes)?\s*")
_SPECIAL = {"nan": math.nan, "inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}


def number(value: Any) -> float | None:
    """Return the float a JSON value or a text without unit stands for; None for text, lists and what is missing."""
    if isinstance(value, (bool, int, float)):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if isinstance(value, str) and 0 < len(value) <= _LONGEST:
        text = value.strip()
        if "," in text and _THOUSANDS.fullmatch(text):
            text = text.replace(",", "")
        try:
            return _SPECIAL.get(text.lower()) or float(text)
        except ValueError:
            return None
    return None


def whole(text: str) -> int | None:
    """Return the integer that ASCII digits spell, of at most 15 digits; None for anything else."""
    plain = text.strip()
    return int(plain) if 0 < len(plain) <= _MOST_DIGITS and plain.isascii() and plain.isdigit() else None


def number_with_unit(text: str) -> tuple[float, str] | None:
    """Split `1410 MHz`, `98 %` or `45C` into the number and its unit; None for anything longer."""
    if len(text) > _LONGEST:
        return None
    if (special := _SPECIAL.get(text.strip().lower())) is not None:
        return special, ""
    match = _NUMBER.fullmatch(text)
    return None if match is None else (float(match[1]), match[2])


def size_in_bytes(text: str) -> int | None:
    """Read a cell that is a size and nothing else (`78738MiB`, `64M`, `12Gi`, `4096`) as bytes, powers of 1024."""
    return size_bytes(text) if len(text) <= _LONGEST and _SIZE.fullmatch(text) else None

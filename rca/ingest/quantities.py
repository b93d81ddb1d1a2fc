"""Numbers as people and programs print them: with units, percent signs, thousands separators."""

from __future__ import annotations

import math
import re
from typing import Any

GIB = 1024.0**3
_BYTES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4, "p": 1024**5}
_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE = re.compile(r"\s*([0-9]+(?:[.,][0-9]+)?)\s*([kKmMgGtTpP]?)(?:i?[bB]|ytes|n)?\s*")
_NUMBER = re.compile(r"\s*([-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*([^\s0-9,.]{0,12})\s*")
_SPECIAL = {"nan": math.nan, "inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}


def number(value: Any) -> float | None:
    """Return the float a JSON value or a text without unit stands for; None for text, lists and what is missing."""
    if isinstance(value, (bool, int, float)):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if isinstance(value, str) and 0 < len(text := value.strip().replace(",", "")) <= 40:
        try:
            return _SPECIAL.get(text.lower()) or float(text)
        except ValueError:
            return None
    return None


def number_with_unit(text: str) -> tuple[float, str] | None:
    """Split `1410 MHz`, `98 %` or `45C` into the number and its unit; None for anything longer."""
    if len(text) > 64:
        return None
    if (special := _SPECIAL.get(text.strip().lower())) is not None:
        return special, ""
    match = _NUMBER.fullmatch(text)
    return None if match is None else (float(match[1]), match[2])


def size_in_bytes(text: str) -> int | None:
    """Read `78738MiB`, `64M`, `12Gi`, `2.50 GiB` or `4096` as bytes; decimal and binary prefixes both count 1024.

    Programs of this field print MB and mean MiB (torch, nvidia-smi, df -h), so the difference is not kept.
    """
    match = _SIZE.fullmatch(text.strip().removesuffix("i")) if len(text) <= 40 else None
    if match is None:
        return None
    return int(float(match[1].replace(",", ".")) * _BYTES[match[2].lower()])


def duration_in_seconds(text: str) -> float | None:
    """Read `600 ms`, `1:02:03`, `2-00:00:00` (Slurm) or `7.5` as seconds."""
    if len(text) > 40:
        return None
    plain = text.strip()
    if ":" in plain:
        days, _, clock = plain.rpartition("-")
        parts = clock.split(":")
        if not all(re.fullmatch(r"[0-9]{1,6}(?:\.[0-9]{1,9})?", part) for part in parts) or len(parts) > 3:
            return None
        seconds = 0.0
        for part in parts:
            seconds = seconds * 60 + float(part)
        return seconds + (float(days) * 86400 if days.isdigit() else 0.0)
    found = number_with_unit(plain)
    if found is None:
        return None
    scale = _SECONDS.get(found[1].lower() or "s")
    return None if scale is None else found[0] * scale

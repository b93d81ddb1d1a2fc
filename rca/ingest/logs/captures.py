"""What a signature caught, as the typed value its author asked for."""

from __future__ import annotations

import math
import re
from typing import Any

from rca.ingest.quantities import number, seconds, size_bytes
from rca.rules.schema import Capture

_BARE = re.compile(r"[\d.,]{1,40}(?:[eE][-+]?\d{1,3})?")


def typed(capture: Capture, text: str) -> Any:
    """Return the text of a capture as its type says; the text itself where it cannot be read that way.

    A number without a unit takes the unit of the capture where that is a size or a time (`kB`, `ms`).
    """
    if capture.type == "str":
        return text
    plain = text.strip()
    if capture.type in {"bytes", "seconds"} and capture.unit not in {"bytes", "B", "s"} and _BARE.fullmatch(plain):
        plain += f" {capture.unit}".rstrip()
    if capture.type == "bytes":
        value: float | int | None = size_bytes(plain)
    elif capture.type == "seconds":
        value = seconds(plain)
    else:
        value = number(plain)
        if capture.type == "int" and value is not None:
            value = int(value) if math.isfinite(value) else None
    return text if value is None else value

"""Numbers, times and sizes as a reader expects them, and text made safe to show."""

from __future__ import annotations

import math
import re
from datetime import datetime

NBSP = "\u00a0"

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
"""Control characters move the cursor of a terminal, and direction marks reorder what a reader sees."""

_COMMAND = re.compile(r"[a-z./~$][\w./~$=+-]*")


def clean(text: str) -> str:
    """`text` without characters that act on a terminal or a page instead of being shown."""
    return _UNSAFE.sub("\ufffd", text.replace("\r\n", "\n"))


def one_line(text: str, *, limit: int = 400) -> str:
    """`text` on one line, cut with an ellipsis at `limit` characters."""
    flat = " ".join(clean(text[: 4 * limit]).split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def is_command(text: str) -> bool:
    """Whether a text is something to type: it starts like a program or a call, and does not end like a sentence."""
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    return bool(_COMMAND.fullmatch(first)) and not text.rstrip().endswith((".", "。"))


def percent(share: float) -> str:
    """A share as a whole percentage; never 0 or 100, which would claim certainty."""
    if share > 0.99:
        return ">99%"
    if share < 0.01:
        return "<1%"
    return f"{round(100 * share)}%"


def number(value: float) -> str:
    """Four significant digits; NaN and infinities by name."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    if value == int(value) and abs(value) < 1e7:
        return f"{int(value):,}" if abs(value) >= 10_000 else str(int(value))
    return f"{value:.4g}"


def signed(value: float) -> str:
    """A weight in nats with its sign, two decimals, true minus sign."""
    return f"{value:+.2f}".replace("-", "\u2212")


def seconds(value: float) -> str:
    """A duration in the two largest units that matter."""
    if not math.isfinite(value):
        return number(value)
    sign, value = ("\u2212", -value) if value < 0 else ("", value)
    if value < 1e-3:
        return f"{sign}{value * 1e6:.0f} µs"
    if value < 1:
        return f"{sign}{value * 1e3:.0f} ms"
    if value < 10:
        return f"{sign}{value:.1f} s"
    whole = round(value)
    for size, unit, below in ((86_400, "d", "h"), (3_600, "h", "min"), (60, "min", "s")):
        if whole >= size:
            rest = (whole % size) // {"h": 3_600, "min": 60, "s": 1}[below]
            return f"{sign}{whole // size} {unit}" + (f" {rest} {below}" if rest else "")
    return f"{sign}{whole} s"


def size(count: int) -> str:
    """A number of bytes in binary units."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def moment(iso: str | None) -> str:
    """An ISO 8601 time as `2026-03-01 12:00:00`, UTC; text that is no time stays as it is."""
    if not iso:
        return ""
    try:
        parsed = datetime.fromisoformat(iso.replace("Z", "+00:00"))
    except ValueError:
        return one_line(iso, limit=40)
    return parsed.strftime("%Y-%m-%d %H:%M:%S")


def clock(iso: str | None) -> str:
    """The time of day of an ISO 8601 time, with milliseconds when it has them."""
    shown = moment(iso)
    fraction = re.search(r"\.(\d{1,3})", iso or "")
    return shown[11:] + (f".{fraction[1]:0<3}" if fraction and shown[11:] else "")


def relative(value: float | None) -> str:
    """Seconds before or after the failure as `−12.3 s` or `+600 s`."""
    if value is None:
        return ""
    if value == 0:
        return "0 s"
    return ("+" if value > 0 else "") + seconds(value)


def numbers_list(values: tuple[int, ...], *, limit: int = 8) -> str:
    """Sorted whole numbers with runs shortened: `0–2, 4–7`."""
    runs: list[tuple[int, int]] = []
    for value in sorted(set(values)):
        if runs and value == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], value)
        else:
            runs.append((value, value))
    shown = [str(a) if a == b else f"{a}\u2013{b}" if b > a + 1 else f"{a}, {b}" for a, b in runs]
    return ", ".join(shown[:limit]) + (", …" if len(shown) > limit else "")

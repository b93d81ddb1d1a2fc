"""Exit codes as process events, with the signal behind them."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any

from rca.events import EventBuilder


def signed(code: int) -> int:
    """Return a shell's 128 + n as -n, the way Python and torchelastic write a signal."""
    return 128 - code if 129 <= code <= 128 + signal.NSIG - 1 else code


def signal_of(code: int) -> str | None:
    """Return the name of the signal that an exit code stands for (137 and -9 are SIGKILL), or None."""
    number = -signed(code)
    try:
        return signal.Signals(number).name if number > 0 else None
    except ValueError:
        return None


def add_exit(
    out: EventBuilder,
    code: int,
    *,
    line: int | None = None,
    offset: int | None = None,
    time: int | None = None,
    text: str | None = None,
    attrs: Mapping[str, Any] | None = None,
) -> None:
    """Add `process.exit` with the signed code as its value."""
    known = {"exit_code": code, "signal": signal_of(code), **(attrs or {})}
    out.add(
        kind="process",
        name="process.exit",
        line=line,
        offset=offset,
        time=time,
        value=float(signed(code)),
        severity="info" if code == 0 else "error",
        text=text,
        attrs={key: value for key, value in known.items() if value is not None},
    )

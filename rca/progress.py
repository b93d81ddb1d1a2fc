"""Progress on standard error: bars on a terminal for what takes over a second, else a line for every stage."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Tell = Callable[[str, int, int], None]

AFTER_S = 1.0
"""Seconds before a bar is drawn."""
_WIDEST = 40
"""Characters shown of a stage, which may name a long path: bar, numbers and time fit into 80 columns beside it."""
_READING = re.compile(r"^read \d+/(\d+) ")


@dataclass(frozen=True)
class How:
    """How progress is shown."""

    form: Literal["bars", "lines", "none"]
    colour: bool = True


def how(*, quiet: bool, lines: bool, color: Literal["auto", "always", "never"] = "auto") -> How:
    """Bars where standard error is a terminal that can draw them, else lines where `lines` are wanted."""
    from rca.report.colour import wants_colour

    if quiet:
        return How("none")
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        return How("bars", colour=wants_colour(color, stream=sys.stderr, environ=os.environ))
    return How("lines" if lines else "none")


@contextmanager
def progress(shown: How) -> Iterator[Tell]:
    """Yield a function that shows a stage and how much of it is done.

    While files are read, these are files, bytes, bytes a second and the time left; of an experiment, its arms and the
    time left.
    """
    if shown.form == "none":
        yield lambda _stage, _done, _total: None
    elif shown.form == "lines":
        yield _lines()
    else:
        with _bars(colour=shown.colour) as tell:
            yield tell


def _lines() -> Tell:
    told: set[str] = set()

    def tell(stage: str, _done: int, _total: int) -> None:
        reading = _READING.match(stage)
        words = f"reading, files: {reading[1]}" if reading else stage
        if words not in told:
            told.add(words)
            sys.stderr.write(f"rca: {words}\n")
            sys.stderr.flush()

    return tell


@contextmanager
def _bars(*, colour: bool) -> Iterator[Tell]:
    from rich.console import Console
    from rich.filesize import decimal
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeRemainingColumn

    from rca.redact.messages import without_secrets

    shareable = lru_cache(maxsize=64)(without_secrets)  # the names of files may hold secrets
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TextColumn("{task.fields[count]}", markup=False),
    )
    timed = (BarColumn(bar_width=10), TimeRemainingColumn(compact=True, elapsed_when_finished=True))
    bars = Progress(*columns, *timed, console=Console(stderr=True, no_color=not colour), transient=True)
    shown: dict[str, TaskID] = {}

    def tell(stage: str, done: int, total: int) -> None:
        kind = stage if stage.startswith("experiment ") else "read" if stage.startswith("read ") else "stage"
        if kind not in shown:
            for old in shown.values():
                bars.remove_task(old)
            shown.clear()
            shown[kind] = bars.add_task(stage, total=None, count="")
        # Without a total the bar pulses: how long a stage other than these takes is not known.
        timed = kind != "stage" and total > 1
        count = f"{done}/{total}{' arms' if timed else ''}" if total > 1 else ""
        if kind == "read":
            speed = bars.tasks[0].speed
            count = f"{decimal(done)} of {decimal(total)}{f', {decimal(int(speed))}/s' if speed else ''}"
        stage = shareable(stage)
        room = max(12, min(_WIDEST, bars.console.width - len(count) - 22))
        bars.update(shown[kind], description=_short(stage, room), completed=done, total=total if timed else None)
        bars.update(shown[kind], count=count)

    starting = threading.Timer(AFTER_S, bars.start)
    starting.daemon = True
    starting.start()
    try:
        yield tell
    finally:
        starting.cancel()
        starting.join()
        bars.stop()


def _short(stage: str, room: int) -> str:
    return stage if len(stage) <= room else f"{stage[: room // 2 - 2]}...{stage[1 + room // 2 - room :]}"

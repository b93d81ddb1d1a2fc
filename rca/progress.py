"""Progress on standard error, for anything that takes over a second."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[str, int, int], None]

AFTER_S = 1.0
"""Seconds before anything is drawn."""
_WIDEST = 48
"""Characters shown of a stage, which may name a long path."""


@contextmanager
def progress(*, enabled: bool) -> Iterator[Tell]:
    """Yield a function that shows a stage and how much of it is done.

    While files are read, these are files, bytes, bytes a second and the time left; of an experiment, its arms and the
    time left. It draws only on a terminal.
    """
    if not enabled:
        yield lambda _stage, _done, _total: None
        return
    from rich.console import Console
    from rich.filesize import decimal
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TextColumn("{task.fields[count]}", markup=False),
    )
    timed = (BarColumn(bar_width=20), TimeRemainingColumn(compact=True, elapsed_when_finished=True))
    bars = Progress(*columns, *timed, console=Console(stderr=True), transient=True)
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
        bars.update(shown[kind], description=_short(stage), completed=done, total=total if timed else None)
        count = f"{done}/{total}{' arms' if timed else ''}" if total > 1 else ""
        if kind == "read":
            speed = bars.tasks[0].speed
            count = f"{decimal(done)} of {decimal(total)}{f', {decimal(int(speed))}/s' if speed else ''}"
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


def _short(stage: str) -> str:
    return stage if len(stage) <= _WIDEST else f"{stage[: _WIDEST // 2]}...{stage[3 - _WIDEST // 2 :]}"

"""Progress on standard error, for anything that takes over a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[str, int, int], None]


@contextmanager
def progress(*, enabled: bool) -> Iterator[Tell]:
    """Yield a function that shows a stage, how much of it is done and, for experiments, how long it will take.

    It draws only on a terminal.
    """
    if not enabled:
        yield lambda _stage, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeRemainingColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.fields[count]}"))
    timed = (BarColumn(bar_width=20), TimeRemainingColumn(compact=True, elapsed_when_finished=True))
    with Progress(*columns, *timed, console=Console(stderr=True), transient=True) as bars:
        shown: dict[str, TaskID] = {}

        def tell(stage: str, done: int, total: int) -> None:
            kind = stage if stage.startswith("experiment ") else "stage"
            if kind not in shown:
                for old in shown.values():
                    bars.remove_task(old)
                shown.clear()
                shown[kind] = bars.add_task(stage, total=None, count="")
            arms = kind != "stage"
            count = f"{done}/{total}{' arms' if arms else ''}" if total > 1 else ""
            # Without a total the bar pulses: how long a stage other than an experiment takes is not known.
            bars.update(shown[kind], description=stage, count=count, completed=done, total=total if arms else None)

        yield tell

"""Progress on standard error, for anything that takes over a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[str, int, int], None]


@contextmanager
def progress(*, enabled: bool) -> Iterator[Tell]:
    """Yield a function that shows a stage; it draws only on a terminal."""
    if not enabled:
        yield lambda _stage, _done, _total: None
        return
    from rich.console import Console

    with Console(stderr=True).status("rca") as status:

        def tell(stage: str, done: int, total: int) -> None:
            status.update(f"{stage} ({done}/{total})" if total > 1 else stage)

        yield tell

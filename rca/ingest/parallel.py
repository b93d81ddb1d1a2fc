"""Sources read in several processes: one that dies takes only its own source along; an interrupt leaves none behind."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

from rca.errors import UnreadableSource

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def in_processes(
    items: Sequence[_Item], read: Callable[[_Item], _Result], *, jobs: int
) -> Iterator[tuple[_Item, Callable[[], _Result]]]:
    """Give every item, in order, with a call that waits for its result or raises what `read` raised.

    When a process dies (killed for its memory, a crash in native code), nobody can tell which item it was reading:
    the items without a result are read again one at a time, and the one that ends its process again raises
    UnreadableSource.
    """
    left = list(items)
    with _pool(min(jobs, len(items)), read) as pool:
        waiting: list[Future[_Result]] = [pool.submit(_read_here, item) for item in items]
        for item, future in zip(items, waiting, strict=True):
            if _died(future):
                break
            left.pop(0)
            yield item, future.result
    while left:
        with _pool(1, read) as pool:
            while left:
                item = left.pop(0)
                future = pool.submit(_read_here, item)
                if _died(future):
                    yield item, _lost
                    break
                yield item, future.result


def _died(future: Future[_Result]) -> bool:
    return isinstance(future.exception(), BrokenProcessPool)


def _lost() -> _Result:  # type: ignore[type-var]  # it never returns
    raise UnreadableSource("the process that read the file was ended from outside or crashed; its memory may be short")


@contextmanager
def _pool(workers: int, read: Callable[[_Item], _Result]) -> Iterator[ProcessPoolExecutor]:
    others = set(multiprocessing.active_children())
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=spawn, initializer=_start, initargs=(read,))
    try:
        yield pool
    except BaseException:
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


_reader: Callable[[Any], Any]
"""What this worker reads with: handed over once, since it carries all patterns."""


def _start(read: Callable[[_Item], _Result]) -> None:
    """Keep the reader, and leave Ctrl-C to the parent, which ends its workers."""
    global _reader  # noqa: PLW0603 - the only way to hand a worker process something once
    _reader = read
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _read_here(item: Any) -> Any:
    return _reader(item)

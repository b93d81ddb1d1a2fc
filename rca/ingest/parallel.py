"""Sources read in several processes: one that dies takes only its own source along; an interrupt leaves none behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

from rca.errors import UnreadableSource

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

PAYS = 16 << 20
"""Bytes from which on further processes pay: each takes 1.5 s of CPU time to start, in which one process reads more
than that of most logs (measured)."""
_MANY = 500
"""Files from which on they pay whatever their size."""
_PENDING = 2
"""Items handed over per process before the first of them is done."""


def pays(sizes: Sequence[int]) -> bool:
    """Say whether reading files of these sizes is worth starting processes; the largest file is read by one alone."""
    return len(sizes) > 1 and (sum(sizes) - max(sizes) >= PAYS or len(sizes) >= _MANY)


def processors() -> int:
    """Number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def largest_first(sizes: Sequence[int]) -> list[int]:
    """Return the indexes of sizes in falling order of magnitude."""
    return sorted(range(len(sizes)), key=lambda index: -sizes[index].bit_length())


def in_processes(
    items: Sequence[_Item], read: Callable[[_Item], _Result], *, sizes: Sequence[int], jobs: int
) -> Iterator[tuple[int, Callable[[], _Result]]]:
    """Give the index of every item, as they are done, with a call that gives its result or raises what `read` raised.

    The largest items come first, so that no process is left with one when the others are done; those of about the same
    size in their order, so that little waits for what stands before it. When a process dies
    (killed for its memory, a crash in native code), nobody can tell which item it was reading: those that were handed
    out are read again one at a time, and the one that ends its process again raises UnreadableSource.
    """
    left = deque(largest_first(sizes))
    suspects: list[int] = []
    while left or suspects:
        if suspects:
            yield from _alone(items, suspects, read)
            suspects = []
        else:
            suspects = yield from _together(items, left, read, jobs)


def _together(
    items: Sequence[_Item], left: deque[int], read: Callable[[_Item], _Result], jobs: int
) -> Generator[tuple[int, Callable[[], _Result]], None, list[int]]:
    """Read what is left in several processes; return what was handed out when one of them died."""
    suspects: list[int] = []
    workers = min(jobs, len(left))
    with _pool(workers, read) as pool:
        pending: dict[Future[_Result], int] = {}
        while (left and not suspects) or pending:
            while left and not suspects and len(pending) < _PENDING * workers:
                index = left.popleft()
                try:
                    with _unheard():
                        pending[pool.submit(_read_here, items[index])] = index
                except BrokenProcessPool:
                    suspects.append(index)
            for future in wait(pending, return_when=FIRST_COMPLETED).done if pending else ():
                index = pending.pop(future)
                if _died(future):
                    suspects.append(index)
                else:
                    yield index, future.result
    return suspects


def _alone(
    items: Sequence[_Item], suspects: Sequence[int], read: Callable[[_Item], _Result]
) -> Iterator[tuple[int, Callable[[], _Result]]]:
    left = list(suspects)
    while left:
        with _pool(1, read) as pool:
            while left:
                index = left.pop(0)
                with _unheard():
                    future = pool.submit(_read_here, items[index])
                if _died(future):
                    yield index, lost
                    break
                yield index, future.result


def _died(future: Future[_Result]) -> bool:
    return isinstance(future.exception(), BrokenProcessPool)


def lost() -> Any:
    """Say why there is no result. Raises UnreadableSource."""
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


@contextmanager
def _unheard() -> Iterator[None]:
    """Let a process that starts here not hear Ctrl-C, which its parent hears; one that starts up would complain."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_reader: Callable[[Any], Any]
"""What this worker reads with: handed over once, since it carries all patterns."""


def _start(read: Callable[[_Item], _Result]) -> None:
    """Keep the reader, and leave Ctrl-C to the parent, which ends its workers."""
    global _reader  # noqa: PLW0603 - the only way to hand a worker process something once
    _reader = read
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _read_here(item: Any) -> Any:
    return _reader(item)

"""Sources read in several processes: one that dies takes only its own source along; an interrupt leaves none behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NoReturn, TypeVar

from rca.errors import UnreadableSource

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

PAYS = 32 << 20
"""Bytes beside the largest file from which on processes pay: each takes 1.9 s of CPU time to start, in which one reads
10 to 15 MB of logs that say much (measured), and more of others."""
_MANY = 500
"""Files from which on they pay whatever their size."""


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
    size in their order, so that little waits for what stands before it. An item whose process dies (killed for its
    memory, a crash in native code) is read again when all others are done; when that ends its process as well, it
    raises UnreadableSource.
    """
    left = deque(largest_first(sizes))
    again: deque[int] = deque()
    with _workers(min(jobs, len(items)), read) as workers:
        yield from _read_all(items, left, read, workers, died=again.append)
        for worker in workers[1:]:
            worker.end()
        del workers[1:]
        dead: list[int] = []
        yield from _read_all(items, again, read, workers, died=dead.append)
    yield from ((index, lost) for index in dead)


def _read_all(
    items: Sequence[_Item],
    left: deque[int],
    read: Callable[[_Item], _Result],
    workers: list[_Worker],
    *,
    died: Callable[[int], None],
) -> Iterator[tuple[int, Callable[[], _Result]]]:
    """Hand one item after the other to whichever worker is free; a worker that died is replaced."""
    while True:
        for place, worker in enumerate(workers):
            if worker.index is None and left:
                worker.index = left.popleft()
                try:
                    worker.connection.send(items[worker.index])
                except OSError:
                    died(worker.index)
                    worker.end()
                    (workers[place],) = _started(1, read)
        busy = {worker.connection: worker for worker in workers if worker.index is not None}
        if not busy and not left:
            return
        for connection in wait(list(busy)) if busy else ():
            worker = busy[connection]  # type: ignore[index]  # all of them are connections
            index, worker.index = worker.index, None
            assert index is not None
            try:
                good, answer = worker.connection.recv()
            except (EOFError, OSError):
                died(index)
                worker.end()
                (workers[workers.index(worker)],) = _started(1, read)
            else:
                yield index, partial(_given, answer) if good else partial(_raise, answer)


def _given(answer: _Result) -> _Result:
    return answer


def _raise(error: BaseException) -> NoReturn:
    raise error


def lost() -> Any:
    """Say why there is no result. Raises UnreadableSource."""
    raise UnreadableSource("the process that read the file was ended from outside or crashed; its memory may be short")


@dataclass(eq=False)
class _Worker:
    """One process, and the item that it reads."""

    process: BaseProcess
    connection: Connection[Any, Any]
    index: int | None = None

    def end(self) -> None:
        self.process.terminate()
        self.connection.close()
        self.process.join()


@contextmanager
def _workers(count: int, read: Callable[[_Item], _Result]) -> Iterator[list[_Worker]]:
    started = _started(count, read)
    every = list(started)
    try:
        yield started
    finally:
        for worker in {*every, *started}:
            worker.end()


def _started(count: int, read: Callable[[_Item], _Result]) -> list[_Worker]:
    """Start processes, all of them before the first has to listen: the reader carries all patterns."""
    context = multiprocessing.get_context("spawn")
    workers = []
    with _unheard():
        for _ in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            workers.append(_Worker(process, ours))
    try:
        for worker in workers:
            worker.connection.send(read)
    except BaseException:
        for worker in workers:
            worker.end()
        raise
    return workers


@contextmanager
def _unheard() -> Iterator[None]:
    """Let processes start that do not hear Ctrl-C, which their parent hears; it comes to the parent afterwards.

    One that is interrupted while it starts, or whose parent is, would write its stack to the terminal.
    """
    heard: list[int] = []
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    main = threading.current_thread() is threading.main_thread()
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM) if main else ():
        before[number] = signal.signal(number, lambda found, _frame: heard.append(found))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
        for found in heard:
            signal.raise_signal(found)


def _work(connection: Connection[Any, Any]) -> None:
    """Read what comes until nothing comes any more; Ctrl-C is left to the parent, which ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        read = connection.recv()
        while True:
            item = connection.recv()
            try:
                answer = True, read(item)
            except Exception as error:  # it is raised again where the result is asked for
                answer = False, error
            connection.send(answer)
    except (EOFError, OSError):
        return

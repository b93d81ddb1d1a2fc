"""Sources read on the machines of a Dask cluster: what travels is where a source lies, and the events found there.

A worker that is lost costs nothing: its sources are read again elsewhere. A source that ends one worker after the other
is given up with its reason.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa

import rca
from rca.diagnosis import SourceRecord
from rca.errors import UsageError
from rca.ingest.interface import Ingested, Place, Source
from rca.ingest.places.archives import Member
from rca.ingest.places.parallel import largest_first, lost
from rca.ingest.places.remote import Remote

Outcome = tuple[SourceRecord, Ingested | None]

_CONNECT_S = 5.0
"""Seconds in which a scheduler must answer."""
_WORKER_S = 60.0
"""Seconds in which a worker must take up work: a cluster that grows with its work starts its first one only then."""
_BATCH_BYTES, _BATCH_FILES = 8 << 20, 64
"""Small sources that travel together: a task costs the scheduler a millisecond, and so does reading a small source."""
_PENDING = 4
"""Batches handed over per thread of the cluster, so that neither scheduler nor client holds thousands."""
_LOOK_S = 5.0
"""Seconds without a result after which it is looked whether there are workers."""

_reading = threading.Lock()
"""One source at a time in a process: the search over lines keeps its state, and threads would not read faster."""


class _Answer(NamedTuple):
    """What a worker says of one source."""

    record: SourceRecord
    ingested: Ingested | None
    """With no events in it."""
    events: bytes
    """In the format of Arrow's streams, a fraction of what a pickled table takes."""


class _Worker(NamedTuple):
    """What a worker says of itself before it is given work."""

    code: str
    """Version and digest of its rca."""
    size: int | None
    """Bytes of the source that was asked for; None where the worker does not see it."""
    why: str


def on_cluster(
    sources: Sequence[Source], read: Callable[[Source], Outcome], *, address: str
) -> Iterator[tuple[int, Callable[[], Outcome]]]:
    """Give the index of every source, as they are done, with a call that gives its outcome or raises what was raised.

    The largest come first. Raises UsageError where Dask is not installed, nobody answers at the address, the workers
    run another rca or do not see the sources, and when the cluster goes away.
    """
    with _connected(address) as client:
        _agree(client, max(sources, key=lambda source: source.size), address)
        # A task and not scattered data: when all workers that hold it die, it is made again.
        reader = client.submit(pickle.loads, pickle.dumps(read), key=f"rca-reader-{time.time_ns()}")
        work = _Work(client, reader, sources, read, address)
        suspects = yield from work.done(_batches(sources))
        for index in suspects:
            yield from work.done(deque([[index]]), alone=True)


@dataclass(frozen=True)
class _Work:
    """Sources on their way over the cluster."""

    client: Any
    reader: Any
    sources: Sequence[Source]
    read: Callable[[Source], Outcome]
    address: str

    def done(
        self, left: deque[list[int]], *, alone: bool = False
    ) -> Generator[tuple[int, Callable[[], Outcome]], None, list[int]]:
        """Read batches; return the sources that were on workers which died, again and again.

        Nobody can tell which of several sources ended a worker, so they are to be read `alone` before that is said.
        """
        from distributed import KilledWorker

        suspects: list[int] = []
        for indexes, future in self._finished(left):
            error = future.exception()
            if error is None:
                for index, answer in zip(indexes, future.result(), strict=True):
                    yield index, partial(self._outcome, index, answer)
            elif len(indexes) > 1:
                left.extend([index] for index in indexes)
            elif not isinstance(error, KilledWorker):
                yield indexes[0], partial(_raise, error)
            elif alone:
                yield indexes[0], lost
            else:
                suspects += indexes
            future.release()
        return suspects

    def _finished(self, left: deque[list[int]]) -> Iterator[tuple[list[int], Any]]:
        """Hand out batches, a bounded number at a time, and give them back as they are done."""
        from distributed import wait

        pending: dict[Any, list[int]] = {}
        heard = time.monotonic()
        while left or pending:
            threads = sum(self.client.nthreads().values())
            while left and len(pending) < _PENDING * max(threads, 1):
                indexes = left.popleft()
                key = f"rca-read-{time.time_ns()}-{indexes[0]}"
                chosen = [self.sources[index] for index in indexes]
                pending[self.client.submit(_read_batch, self.reader, chosen, key=key)] = indexes
            if threads:
                heard = time.monotonic()
            elif time.monotonic() - heard > _WORKER_S:
                raise UsageError(f"the cluster at {self.address} has lost all its workers; start some and try again")
            try:
                finished = wait(list(pending), timeout=_LOOK_S, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                continue
            for future in finished:
                yield pending.pop(future), future

    def _outcome(self, index: int, answer: _Answer | None) -> Outcome:
        """Return what the worker found, or what is found here where that worker did not see the source."""
        if answer is None:
            return self.read(self.sources[index])
        if answer.ingested is None:
            return answer.record, None
        events = pa.ipc.open_stream(answer.events).read_all()
        return answer.record, replace(answer.ingested, events=events)


def _raise(error: BaseException) -> NoReturn:
    raise error


def _batches(sources: Sequence[Source]) -> deque[list[int]]:
    """Group the indexes of sources, the largest first, so that what is small travels together."""
    batches: deque[list[int]] = deque()
    size = _BATCH_BYTES
    for index in largest_first([source.size for source in sources]):
        size += sources[index].size
        if size > _BATCH_BYTES or len(batches[-1]) >= _BATCH_FILES:
            batches.append([])
            size = sources[index].size
        batches[-1].append(index)
    return batches


def _read_batch(read: Callable[[Source], Outcome], sources: Sequence[Source]) -> list[_Answer | None]:
    """Read sources on a worker; None for one that this worker does not see."""
    answers: list[_Answer | None] = []
    for source in sources:
        base = _base(source.file)
        if isinstance(base, Path) and not base.exists():
            answers.append(None)
            continue
        with _reading:
            record, ingested = read(source)
        if ingested is None:
            answers.append(_Answer(record, None, b""))
        else:
            empty = replace(ingested, events=ingested.events.schema.empty_table())
            answers.append(_Answer(record, empty, _packed(ingested.events)))
    return answers


def _packed(events: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, events.schema, options=options) as writer:
        writer.write_table(events)
    return bytes(sink.getvalue())


def _agree(client: Any, source: Source, address: str) -> None:
    """Ask every worker for its rca and for one source. Raises UsageError where they would not do the same as here."""
    ours = _asked(source)
    try:
        # A cluster that grows with its work starts a worker for this one.
        client.submit(_asked, source, key=f"rca-ask-{time.time_ns()}").result(timeout=_WORKER_S)
        answers = client.run(_asked, source, on_error="return")
    except TimeoutError as error:
        raise UsageError(f"no worker of the cluster at {address} took up work within {_WORKER_S:.0f} s") from error
    except ImportError as error:
        raise UsageError(_other_code(address, f"have no rca ({error})")) from error
    for worker, answer in answers.items():
        if isinstance(answer, BaseException):
            raise UsageError(_other_code(worker, f"cannot start it ({type(answer).__name__}: {answer})"))
        if answer.size != ours.size:
            what = answer.why or f"they see {answer.size:,} bytes, not {ours.size or 0:,}"
            raise UsageError(
                f"the workers of the cluster do not see {source.file} ({worker}: {what}); "
                "use a file system that they share, or a URL such as s3://bucket/run"
            )
        if answer.code != ours.code:
            raise UsageError(_other_code(worker, f"run rca {answer.code}"))


def _other_code(worker: str, what: str) -> str:
    return f"the workers of the cluster ({worker}) {what}; install there what runs here: rca {_code()}"


def _asked(source: Source) -> _Worker:
    """Say of this process which rca it runs, and how large the file is in which a source lies."""
    base = _base(source.file)
    try:
        size = int(base.fs.info(base.path)["size"]) if isinstance(base, Remote) else base.lstat().st_size
    except OSError as error:
        return _Worker(_code(), None, error.strerror or str(error))
    return _Worker(_code(), size, "")


def _base(place: Place) -> Place:
    while isinstance(place, Member):
        place = place.archive
    return place


@lru_cache(maxsize=1)
def _code() -> str:
    """Version of rca with a digest of its program: what differs would find something else in the same logs."""
    digest = hashlib.sha256()
    folder = Path(rca.__file__).parent
    for file in sorted(folder.rglob("*.py")):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes())
    return f"{rca.__version__} ({digest.hexdigest()[:8]})"


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Give a client of the cluster, without its log messages on the terminal."""
    try:
        import distributed
    except ImportError as error:
        raise UsageError("--cluster needs Dask: pip install 'rca-dl[cluster]'") from error
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        # A client that finds nobody would complain at the end of the process, after the sentence was told.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, _answering(address)).result()
        client = distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
        try:
            with client.as_current():
                yield client
        except (CancelledError, distributed.comm.CommClosedError) as error:
            raise UsageError(f"the connection to the Dask scheduler at {address} was lost; try again") from error
        finally:
            client.close()
    finally:
        logger.setLevel(level)


async def _answering(address: str) -> None:
    """Ask who is there. Raises UsageError where that is no scheduler."""
    from distributed import Security, rpc

    try:
        async with rpc(address, connection_args=Security().get_connection_args("client")) as remote:
            found = await asyncio.wait_for(remote.identity(), _CONNECT_S)
    except (OSError, ValueError, TypeError, MemoryError, asyncio.TimeoutError) as error:
        raise UsageError(
            f"no Dask scheduler answers at {address}; give its address as tcp://HOST:8786 and check that it runs"
        ) from error
    if found.get("type") != "Scheduler":
        raise UsageError(f"at {address} runs a {found.get('type')} of Dask; give the address of the scheduler")

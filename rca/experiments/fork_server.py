"""A server that answers requests by forking: one process a job, whatever becomes of it is an answer.

The messages are those of `rca.experiments.child`.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

MAX_RESULT = 8 * 1024 * 1024
"""Bytes of one answer; a training answers with a few thousand."""
_HINTS = {
    "SIGXCPU": ", its CPU limit",
    "SIGKILL": ", from outside or because the system had no memory left",
    "SIGABRT": ", a library gave up",
    "SIGSEGV": ", a library read where it must not",
}


@dataclass
class _Job:
    id: int
    pid: int
    fd: int
    deadline: float
    limits: str
    data: bytearray = field(default_factory=bytearray)
    ending: str = ""
    """Why the server ended it, in words."""
    closed: bool = False
    """Its pipe ended."""


class ForkServer:
    """The running jobs and the pipes that lead to them.

    `prepare` is called with the family of a request before the fork, `work` in the new process with the request and the
    descriptor to answer on; it must not return.
    """

    def __init__(
        self,
        source: int,
        results: int,
        *,
        prepare: Callable[[str], None],
        work: Callable[[dict[str, Any], int], NoReturn],
    ) -> None:
        self.source, self.results, self.prepare, self.work = source, results, prepare, work
        self.jobs: dict[int, _Job] = {}
        self.pending = b""
        self.selector = selectors.DefaultSelector()
        self.selector.register(source, selectors.EVENT_READ, None)

    def run(self) -> None:
        """Go round until standard input ends."""
        self._answer({"ready": True})
        while True:
            pause = None if not self.jobs else 0.01 if any(job.closed for job in self.jobs.values()) else 0.1
            for key, _ in self.selector.select(timeout=pause):
                if key.data is not None:
                    self._read(key.data)
                elif not self._requests():
                    for job in self.jobs.values():
                        _kill(job)
                    return
            for job in list(self.jobs.values()):
                self._watch(job)

    def _requests(self) -> bool:
        chunk = os.read(self.source, 1 << 16)
        self.pending += chunk
        *lines, self.pending = self.pending.split(b"\n")
        for line in lines:
            request = json.loads(line)
            for number in request.get("cancel", ()):
                if number in self.jobs:
                    self._end(self.jobs[number], "the job was no longer wanted")
            if "id" in request:
                self._start(request)
        return bool(chunk)

    def _start(self, request: dict[str, Any]) -> None:
        with suppress(Exception):  # what fails here fails in the job too, where it is an answer
            self.prepare(request.get("family", ""))
        reader, writer = os.pipe()
        try:
            pid = os.fork()
        except OSError as error:
            os.close(reader)
            os.close(writer)
            why = f"the system could not start a process for the job: {error.strerror}"
            self._answer({"id": request["id"], "ok": False, "died": True, "error": why})
            return
        if pid == 0:
            for fd in (reader, self.results, self.selector.fileno(), *(job.fd for job in self.jobs.values())):
                with suppress(OSError):
                    os.close(fd)
            self.work(request, writer)
        with suppress(OSError):  # the job does the same; whoever comes first
            os.setpgid(pid, pid)
        os.close(writer)
        os.set_blocking(reader, False)
        memory = (
            f"{request['memory_bytes'] / 2**30:.3g} GiB of memory" if request["memory_bytes"] else "no memory limit"
        )
        job = _Job(
            id=request["id"],
            pid=pid,
            fd=reader,
            deadline=time.monotonic() + request["wall_seconds"],
            limits=f"{request['wall_seconds']:g} s, {request['cpu_seconds']:g} s of CPU time, {memory}",
        )
        self.jobs[job.id] = job
        self.selector.register(reader, selectors.EVENT_READ, job)

    def _read(self, job: _Job) -> None:
        with suppress(BlockingIOError):
            while len(job.data) <= MAX_RESULT:
                chunk = os.read(job.fd, 1 << 16)
                if not chunk:
                    self._end(job, "")
                    return
                job.data += chunk
        if len(job.data) > MAX_RESULT:
            self._end(job, f"the job was ended because it answered with more than {MAX_RESULT >> 20} MiB")

    def _end(self, job: _Job, why: str) -> None:
        """Stop listening and kill what is left of it; one that has finished keeps its exit status."""
        if not job.closed:
            job.closed, job.ending = True, why
            self.selector.unregister(job.fd)
        _kill(job)

    def _watch(self, job: _Job) -> None:
        pid, status = os.waitpid(job.pid, os.WNOHANG)
        if pid == 0:
            if time.monotonic() > job.deadline:
                self._end(job, f"the job was stopped at its time limit ({job.limits})")
            return
        if not job.closed:
            # It is gone, but something that it started holds the pipe open.
            self._read(job)
            if not job.closed:
                self.selector.unregister(job.fd)
            with suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
        os.close(job.fd)
        del self.jobs[job.id]
        self._answer({"id": job.id, **_outcome(job, status)})

    def _answer(self, document: dict[str, Any]) -> None:
        data = json.dumps(document).encode() + b"\n"
        while data:
            data = data[os.write(self.results, data) :]


def _outcome(job: _Job, status: int) -> dict[str, Any]:
    if job.ending:
        return {"ok": False, "died": True, "error": job.ending}
    try:
        answer = json.loads(job.data)
    except ValueError:
        answer = None
    if isinstance(answer, dict) and "ok" in answer:
        return answer
    if job.data and not os.WIFSIGNALED(status):
        return {"ok": False, "died": True, "error": "the job answered with something that is no result"}
    return {"ok": False, "died": True, "error": _death(job, status)}


def _death(job: _Job, status: int) -> str:
    if os.WIFSIGNALED(status):
        name = signal_name(os.WTERMSIG(status))
        return f"the job was ended by {name}{_HINTS.get(name, '')} (limits: {job.limits})"
    return f"the job left with code {os.WEXITSTATUS(status)} and no answer (limits: {job.limits})"


def signal_name(number: int) -> str:
    """Return the name of a signal; real-time signals have none of their own."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _kill(job: _Job) -> None:
    """Kill the job, which was not waited for yet, and what it started."""
    with suppress(ProcessLookupError):
        os.killpg(job.pid, signal.SIGKILL)

"""The child process: a fork server that imports torch once and runs every job in a process of its own.

    python -m rca.experiments.child

Reads one JSON document a line from standard input, writes one a line to standard output:

    {"id": 1, "task": "train", "payload": {...}, "memory_bytes": 2e9, "cpu_seconds": 60, "wall_seconds": 120}
    {"id": 1, "ok": true, "result": {...}}   or   {"id": 1, "ok": false, "error": "the job was killed by SIGABRT"}

A job that aborts, is killed, runs out of memory or time is an outcome. The server itself never computes anything with
torch, so that forking is safe, and never touches a GPU.
"""

from __future__ import annotations

import json
import os
import resource
import selectors
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

MAX_RESULT = 32 * 1024 * 1024


@dataclass
class _Job:
    id: int
    pid: int
    fd: int
    deadline: float
    limits: str
    data: bytes = b""
    late: bool = False


def serve(source: int = 0, sink: int = 1) -> None:
    """Answer requests until standard input ends."""
    os.nice(5)
    _preload()
    results = os.fdopen(os.dup(sink), "w", buffering=1)
    os.dup2(2, 1)
    selector = selectors.DefaultSelector()
    selector.register(source, selectors.EVENT_READ, None)
    jobs: dict[int, _Job] = {}
    pending = b""
    while True:
        for key, _ in selector.select(timeout=0.2):
            if key.data is None:
                chunk = os.read(source, 1 << 16)
                if not chunk:
                    for job in jobs.values():
                        _kill(job)
                    return
                pending += chunk
                *lines, pending = pending.split(b"\n")
                for line in lines:
                    job = _start(json.loads(line))
                    jobs[job.fd] = job
                    selector.register(job.fd, selectors.EVENT_READ, job)
                continue
            job = key.data
            chunk = os.read(job.fd, 1 << 16)
            job.data += chunk
            if not chunk or len(job.data) > MAX_RESULT:
                selector.unregister(job.fd)
                del jobs[job.fd]
                results.write(json.dumps(_finish(job)) + "\n")
        for job in jobs.values():
            if time.monotonic() > job.deadline and not job.late:
                job.late = True
                _kill(job)


def _preload() -> None:
    """Import everything that a job would import on first use: in a fork of its own that costs 2 s, every time."""
    import torch
    import torch._dynamo

    import rca.experiments.checks.probes
    import rca.experiments.loops.arms
    import rca.experiments.memory.track
    import rca.experiments.twin.train  # noqa: F401

    torch.set_num_threads(1)


@cache
def _prepare(family: str) -> None:
    """Build one tiny model of a family, so that its modules are imported; no autograd, which would forbid forking."""
    from rca.experiments.twin.config import FAMILIES, TwinConfig
    from rca.experiments.twin.models import build

    if family in FAMILIES:
        build(TwinConfig(family=family))


def _start(request: dict[str, Any]) -> _Job:
    _prepare(request["family"])
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _run_and_leave(request, writer)
    os.close(writer)
    return _Job(
        id=request["id"],
        pid=pid,
        fd=reader,
        deadline=time.monotonic() + request["wall_seconds"],
        limits=f"{request['wall_seconds']:g} s of wall time, {request['cpu_seconds']:g} s of CPU time, "
        f"{request['memory_bytes'] / 2**30:.3g} GiB of memory",
    )


def _run_and_leave(request: dict[str, Any], writer: int) -> None:
    """The job's process: limits first, then the work, then `_exit` without any clean-up of the server's state."""
    code = 1
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        seconds = max(1, int(request["cpu_seconds"]))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if request["memory_bytes"]:
            limit = _address_space() + int(request["memory_bytes"])
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        answer: dict[str, Any] = {"ok": True, "result": perform(request["task"], request["payload"])}
        code = 0
    except MemoryError:
        answer = {"ok": False, "error": "out of memory (MemoryError)"}
    except Exception as error:  # the boundary of a process: whatever a job raises is its answer
        text = " ".join(str(error).split())[:400]
        answer = {"ok": False, "error": f"{type(error).__name__}: {text}"}
    try:
        data = json.dumps(answer).encode()
        while data:
            data = data[os.write(writer, data) :]
    finally:
        os._exit(code)


def perform(task: str, payload: dict[str, Any]) -> Any:
    """Carry out one task: `train`, `memory`, `probe` or `loop`."""
    if task == "train":
        from rca.experiments.twin.config import TwinConfig
        from rca.experiments.twin.supplied import maker
        from rca.experiments.twin.train import train_arm

        config, make = TwinConfig.model_validate(payload["config"]), maker(payload.get("supplied"))
        return train_arm(config, payload["seed"], device=payload["device"], make=make)
    if task == "memory":
        from rca.experiments.memory.question import MemoryQuestion
        from rca.experiments.memory.track import peak

        return peak(MemoryQuestion.model_validate(payload))
    if task == "probe":
        from rca.experiments.checks.probes import run_probe

        return run_probe(payload["name"], payload["settings"])
    if task == "loop":
        from rca.experiments.loops.arms import run_arms

        return run_arms(payload)
    raise ValueError(f"unknown task {task!r}; known are train, memory, probe, loop")


def _finish(job: _Job) -> dict[str, Any]:
    os.close(job.fd)
    _, status = os.waitpid(job.pid, 0)
    try:
        answer: dict[str, Any] = json.loads(job.data)
    except ValueError:
        answer = {"ok": False, "error": _death(job, status)}
    return {"id": job.id, **answer}


def _death(job: _Job, status: int) -> str:
    if job.late:
        return f"the job was stopped at its time limit ({job.limits})"
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name
        why = " (its CPU limit)" if number == signal.SIGXCPU else ""
        return f"the job was ended by {name}{why} (limits: {job.limits})"
    return f"the job left with code {os.WEXITSTATUS(status)} and no answer (limits: {job.limits})"


def _kill(job: _Job) -> None:
    """Kill the job and what it started; between fork and `setpgid` it has no group of its own yet."""
    try:
        os.killpg(job.pid, signal.SIGKILL)
    except ProcessLookupError:
        with suppress(ProcessLookupError):
            os.kill(job.pid, signal.SIGKILL)


def _address_space() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    serve()

"""The child process: a fork server that imports torch once and runs every job in a process of its own.

    python -m rca.experiments.child

Reads one JSON document a line from standard input, writes one a line to standard output:

    {"id": 1, "task": "train", "payload": {...}, "device": "cpu", "family": "llama",
     "memory_bytes": 2e9, "cpu_seconds": 60, "wall_seconds": 120}
    {"cancel": [1]}
    {"ready": true}   once, when everything is imported
    {"id": 1, "ok": true, "result": {...}}   or   {"id": 1, "ok": false, "error": "the job was ended by SIGABRT"}

A job that aborts, is killed, hangs, runs out of memory or time, or cannot be started is an outcome. The server itself
never computes anything with torch, so that forking is safe, and never touches a GPU. It ends when standard input ends,
so no process outlives the program that asked; jobs end with the server, whatever ends it.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from contextlib import suppress
from functools import cache
from typing import Any, NoReturn

from rca.experiments.fork_server import ForkServer

MAX_FILE = 256 * 1024 * 1024
"""Largest file that a job may write, its part of the error output included."""
NICENESS = 10
"""Of the server and its jobs, unless `rca` itself runs at a lower priority: who works on the machine comes first."""
_PR_SET_PDEATHSIG = 1


def serve(source: int = 0, sink: int = 1) -> NoReturn:
    """Answer requests until standard input ends."""
    results = os.dup(sink)
    os.dup2(2, 1)
    os.nice(max(0, NICENESS - os.nice(0)))
    _preload()
    ForkServer(source, results, prepare=_prepare, work=_run_and_leave).run()
    os._exit(0)  # without the clean-up of the libraries, which takes longer than anybody waits


def _preload() -> None:
    """Import everything that a job would import on first use: in a fork of its own that costs 2 s, every time."""
    import torch
    import torch._dynamo

    import rca.experiments.checks.probes
    import rca.experiments.loops.arms
    import rca.experiments.memory.track
    import rca.experiments.twin.train  # noqa: F401

    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)


@cache
def _prepare(family: str) -> None:
    """Build one tiny model of a family, so that its modules are imported; no autograd, which would forbid forking."""
    from rca.experiments.twin.config import FAMILIES, TwinConfig
    from rca.experiments.twin.models import build

    if family in FAMILIES:
        build(TwinConfig(family=family))


def _run_and_leave(request: dict[str, Any], writer: int) -> NoReturn:
    """The job's process: limits first, then the work, then `_exit` without any clean-up of the server's state."""
    code = 1
    try:
        _confine(request)
        answer: dict[str, Any] = {"ok": True, "result": perform(request["task"], request["payload"])}
        if request.get("device", "cpu") != "cpu":
            from rca.experiments.devices import peak

            answer["device_bytes"] = peak(request["device"])
        code = 0
    except MemoryError:
        answer = {"ok": False, "died": True, "error": f"the job ran out of memory ({_memory(request)})"}
    except Exception as error:  # the boundary of a process: whatever a job raises is its answer
        text = f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
        starved = "can't allocate memory" in text or "OutOfMemory" in text
        if starved:
            text = f"the job ran out of memory ({_memory(request)}): {text}"
        answer = {"ok": False, "died": starved, "error": text}
    try:
        data = json.dumps(answer).encode()
        while data:
            data = data[os.write(writer, data) :]
    finally:
        os._exit(code)


def _confine(request: dict[str, Any]) -> None:
    """Limits of one job; it is the first to go when the system runs out of memory, and goes when the server goes."""
    server = os.getppid()
    with suppress(OSError):  # the server does the same; whoever comes first
        os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != server:
            os._exit(1)
        with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("800")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    seconds = max(1, int(request["cpu_seconds"]))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE, MAX_FILE))
    taken = _address_space()
    if request["memory_bytes"] and taken:
        limit = taken + int(request["memory_bytes"])
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    if request.get("device", "cpu") != "cpu":
        from rca.experiments.devices import confine

        confine(request["device"])


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


def _memory(request: dict[str, Any]) -> str:
    if not request["memory_bytes"]:
        return "its share of the device"
    return f"limit {request['memory_bytes'] / 2**30:.3g} GiB beside the libraries"


def _address_space() -> int:
    """Bytes of address space in use; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


if __name__ == "__main__":
    serve()

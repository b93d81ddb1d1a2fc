"""A child whose jobs misbehave in every way, with the real server around them; started as a program by the tests."""

from __future__ import annotations

import os
import signal
import stat
import sys
import time
from contextlib import suppress
from errno import EAGAIN
from pathlib import Path
from typing import Any

from rca.experiments import child

KNOWN = {"hang", "kill", "abort", "hoard", "garbage"}
"""What the program can be told to do with every task."""


def perform(task: str, payload: dict[str, Any]) -> Any:
    if task not in KNOWN and sys.argv[-1] in KNOWN:
        task, payload = sys.argv[-1], {"signal": "SIGKILL", "bytes": 2**33}
    note = payload.get("note")
    if note:
        Path(note).write_text(f"{os.getpid()} {os.getpgid(0)} {os.getsid(0)} {os.nice(0)}", encoding="ascii")
    if task == "hang":
        time.sleep(600)
    if task == "spin":
        while True:
            pass
    if task == "abort":
        os.abort()
    if task == "kill":
        os.kill(os.getpid(), getattr(signal, payload["signal"]))
    if task == "realtime":
        os.kill(os.getpid(), 40)
    if task == "leave":
        os._exit(3)
    if task == "hoard":
        return len(bytearray(payload["bytes"]))
    if task == "raise":
        raise ValueError("wrong\nin two lines")
    if task == "flood":
        return "x" * (child_limit() + 1000)
    if task == "endless":
        while True:
            write_to_pipes(b"x" * 65536)
    if task == "garbage":
        write_to_pipes(b"}garbage\xff")
        os._exit(0)
    if task == "close":
        for fd in pipes():
            os.close(fd)
        time.sleep(600)
    if task == "heir":
        if os.fork() == 0:
            time.sleep(600)
        os._exit(5)
    if task == "print":
        print("to standard output")
        os.write(1, b"to standard output\n")
    if task == "file":
        with open(payload["path"], "wb") as file:
            file.truncate(child.MAX_FILE + 1)
    if task == "read":
        return sys.stdin.read()
    return payload.get("value", "done")


def child_limit() -> int:
    from rca.experiments.fork_server import MAX_RESULT

    return MAX_RESULT


def pipes() -> list[int]:
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the one that listed them is closed
            if int(name) > 2 and stat.S_ISFIFO(os.fstat(int(name)).st_mode):
                found.append(int(name))
    return found


def write_to_pipes(data: bytes) -> None:
    for fd in pipes():
        os.write(fd, data)


def no_fork() -> int:
    raise BlockingIOError(EAGAIN, os.strerror(EAGAIN))


child.perform = perform  # type: ignore[assignment]
child._preload = lambda: None
child._prepare = lambda family: None  # type: ignore[assignment]
if "no-fork" in sys.argv:
    os.fork = no_fork
child.serve()

"""A command whose output, signals and end pass through unchanged while a copy of the output is kept."""

from __future__ import annotations

import fcntl
import os
import selectors
import signal
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from rca.errors import UsageError

_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Sent to us alone. Ctrl-C and Ctrl-\\ reach the command from the terminal itself, and are only survived here."""
_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
_PIECE = 1 << 16
_POLL_S = 0.1
_LINGER_S = 1.0
"""What a process left behind by the command may still write after its end."""


@dataclass(frozen=True)
class Ended:
    """How the command ended."""

    code: int
    """Exit code; negative for a signal."""
    started: float
    """Seconds since the epoch."""
    seconds: float
    peak_rss_bytes: int
    """Largest resident set of the command or of any process it waited for."""
    interrupted: bool = False
    """Somebody pressed Ctrl-C meanwhile."""


def watched(command: Sequence[str], *, environ: Mapping[str, str], stdout: Path, stderr: Path) -> Ended:
    """Run a command to its end, its output copied to two files. Raises UsageError where it cannot be started."""
    with ExitStack() as held:
        copies = [_Copy(held, ours, file) for ours, file in ((1, stdout), (2, stderr))]
        started = time.time()
        clock = time.monotonic()
        with _passing_signals() as (passing, survived):
            try:
                child = subprocess.Popen(command, env=dict(environ), stdout=copies[0].theirs, stderr=copies[1].theirs)
            except OSError as error:
                raise UsageError(
                    f"{command[0]} cannot be started: {error.strerror}; check the command after --"
                ) from error
            passing.append(child.pid)
            for copy in copies:
                os.close(copy.theirs)
            status, peak = _followed(child.pid, copies)
            passing.clear()
        child.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - clock
    return Ended(child.returncode, started, seconds, peak * 1024, interrupted=signal.SIGINT in survived)


def end_like(code: int) -> int:
    """Return the exit code of a command, or end this process by the signal that ended the command."""
    if code >= 0:
        return code
    import resource

    # The command left its core dump; another one of this process would say nothing.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if -code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    return 128 - code


class _Copy:
    """One stream of the command: a terminal where ours is one, so that it prints as it always does, else a pipe."""

    def __init__(self, held: ExitStack, ours: int, file: Path) -> None:
        self.ours = ours
        if os.isatty(ours):
            self.from_child, self.theirs = os.openpty()
            size = fcntl.ioctl(ours, termios.TIOCGWINSZ, b"\0" * 8)
            fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, size)
            settings = termios.tcgetattr(self.theirs)
            settings[1] &= ~termios.ONLCR  # our own terminal turns line ends into what it needs
            termios.tcsetattr(self.theirs, termios.TCSANOW, settings)
        else:
            self.from_child, self.theirs = os.pipe()
        self._file = held.enter_context(file.open("wb", buffering=0))

    def take(self) -> bool:
        """Copy what is there; False at the end."""
        try:
            data = os.read(self.from_child, _PIECE)
        except OSError:  # a terminal whose other side is closed
            data = b""
        if not data:
            return False
        self._file.write(data)
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(self.ours, left) :]
        except BrokenPipeError:
            return False  # nobody reads any more: the command is told so by its next write
        return True

    def close(self) -> None:
        os.close(self.from_child)


def _followed(pid: int, copies: Sequence[_Copy]) -> tuple[int, int]:
    """Copy until the command has ended and its streams are closed; return wait status and peak memory in KiB."""
    ended: tuple[int, int] | None = None
    last = time.monotonic()
    with selectors.DefaultSelector() as waiting:
        for copy in copies:
            waiting.register(copy.from_child, selectors.EVENT_READ, copy)
        while ended is None or waiting.get_map():
            for key, _ in waiting.select(_POLL_S) if waiting.get_map() else _pause():
                last = time.monotonic()
                copy = key.data
                if not copy.take():
                    waiting.unregister(copy.from_child)
                    copy.close()
            if ended is None:
                found, status, usage = os.wait4(pid, os.WNOHANG)
                ended = (status, usage.ru_maxrss) if found else None
            elif time.monotonic() - last > _LINGER_S:
                break
        for key in list(waiting.get_map().values()):
            key.data.close()
    return ended


def _pause() -> tuple[()]:
    time.sleep(_POLL_S)
    return ()


@contextmanager
def _passing_signals() -> Iterator[tuple[list[int], set[int]]]:
    """Pass signals that are sent to this process on to those in the list; the set tells which were survived."""
    to: list[int] = []
    survived: set[int] = set()

    def pass_on(number: int, _frame: FrameType | None) -> None:
        for pid in to:
            os.kill(pid, number)

    def survive(number: int, _frame: FrameType | None) -> None:
        survived.add(number)

    before = {number: signal.signal(number, pass_on) for number in _PASSED_ON}
    before |= {number: signal.signal(number, survive) for number in _FROM_TERMINAL}
    try:
        yield to, survived
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

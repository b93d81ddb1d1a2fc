"""The parent's end of the pipes to the child: never waits longer than told, whatever the child does."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import rca
from rca.errors import ExperimentError
from rca.experiments.fork_server import signal_name

MAX_ANSWER = 16 * 1024 * 1024
"""Bytes without the end of an answer after which the child is taken for broken."""


class ChildEnded(ExperimentError):
    """The child is gone, or no longer speaks; the message says why."""


class ChildProcess:
    """A started child. Raises ChildEnded when it cannot be started."""

    def __init__(self, command: Sequence[str], *, environment: Mapping[str, str]) -> None:
        self.ready = False
        """It has said that everything is imported."""
        self._incoming = bytearray()
        self._outgoing = bytearray()
        self._whole = False
        self._stderr = TemporaryFile()  # noqa: SIM115 - lives as long as the child
        # The folder of the package as working directory: `python -m` puts it first on the path, and a run directory
        # must never be there.
        home = Path(rca.__file__).resolve().parents[1]
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                cwd=home,
                env=dict(environment),
                start_new_session=True,
            )
        except OSError as error:
            self._stderr.close()
            raise ChildEnded(f"the child process could not be started: {error}") from error
        if self._process.stdin is None or self._process.stdout is None:
            raise ChildEnded("the child process could not be started: it has no pipes")
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)

    @property
    def pid(self) -> int:
        """Its process id, which is that of its session as well."""
        return self._process.pid

    def post(self, document: Mapping[str, Any]) -> None:
        """Lay a message aside for the next `exchange`."""
        self._outgoing += json.dumps(document).encode() + b"\n"

    def exchange(self, until: float) -> list[dict[str, Any]]:
        """Write what waits and read what comes, until there is an answer or `until` (monotonic clock) comes.

        Raises ChildEnded when the child is gone or writes what is no answer.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(self._from, selectors.EVENT_READ)
            writing = False
            while not self._whole:
                if bool(self._outgoing) != writing:
                    writing = not writing
                    if writing:
                        selector.register(self._to, selectors.EVENT_WRITE)
                    else:
                        selector.unregister(self._to)
                left = until - time.monotonic()
                if left <= 0:
                    return []
                for key, _ in selector.select(timeout=left):
                    self._write() if key.fd == self._to else self._read()
        self._whole = False
        *lines, self._incoming = self._incoming.split(b"\n")
        return [document for line in lines if (document := self._document(line)) is not None]

    def end(self, *, patience: float) -> None:
        """End it and everything that it started: it may leave by itself within `patience` seconds."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        try:
            self._process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._stderr.close()

    def _write(self) -> None:
        try:
            del self._outgoing[: os.write(self._to, self._outgoing)]
        except BlockingIOError:
            return
        except OSError:
            self._outgoing.clear()  # it reads no more; what it wrote until then tells why

    def _read(self) -> None:
        try:
            chunk = os.read(self._from, 1 << 16)
        except BlockingIOError:
            return
        if not chunk:
            raise self._ended()
        self._incoming += chunk
        self._whole = self._whole or b"\n" in chunk
        if len(self._incoming) > MAX_ANSWER:
            raise ChildEnded(f"the child process wrote {MAX_ANSWER >> 20} MiB without finishing an answer")

    def _document(self, line: bytearray) -> dict[str, Any] | None:
        try:
            document = json.loads(line)
        except ValueError:
            document = None
        if not isinstance(document, dict) or not ("id" in document or "ready" in document):
            raise ChildEnded("the child process wrote something that is no answer")
        if "ready" in document:
            self.ready = True
            return None
        return document

    def _ended(self) -> ChildEnded:
        code: int | None = None
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(timeout=0.5)
        if code is not None and code < 0:
            how = f"was ended by {signal_name(-code)}"
        else:
            how = f"ended: {self._last_words() or 'it closed its output'}"
        if not self.ready:
            return ChildEnded(f"the child process did not start, it {how}")
        return ChildEnded(f"the child process {how}")

    def _last_words(self) -> str:
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - 2000))
        lines = self._stderr.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:300] if lines else ""

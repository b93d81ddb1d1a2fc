"""Vega-Lite specifications to SVG, in a child process that can be started ahead of time."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

TIMEOUT_S = 30.0
"""Start of the engine (0.8 s measured) and all charts of one report (0.05 s each), with room for a busy machine."""


class ChartEngine:
    """One child process; started at the first call, or earlier by `start`."""

    def __init__(self, *, timeout_s: float = TIMEOUT_S) -> None:
        self.timeout_s = timeout_s
        self._lock = threading.Lock()
        self._child: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the child and return at once; does nothing when it already runs."""
        with self._lock:
            self._running()

    def draw(self, specs: Sequence[dict[str, Any]]) -> list[str | None]:
        """One SVG a specification; None where it could not be drawn, whatever the reason."""
        if not specs:
            return []
        with self._lock:
            answers = self._ask(json.dumps(list(specs), allow_nan=False))
        return [answer.get("svg") for answer in answers] if len(answers) == len(specs) else [None] * len(specs)

    def close(self) -> None:
        """End the child."""
        with self._lock:
            if self._child is not None:
                self._child.kill()
                self._child.communicate()
                self._child = None

    def _running(self) -> subprocess.Popen[str] | None:
        if self._child is None or self._child.poll() is not None:
            # The child searches exactly the parent's path: `-c` alone would put the working directory first.
            code = f"import sys; sys.path[:] = {sys.path!r}; from rca.report.chart_worker import main; main()"
            try:
                self._child = subprocess.Popen(
                    [sys.executable, "-c", code],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    encoding="utf-8",
                )
            except OSError:
                self._child = None
        return self._child

    def _ask(self, request: str) -> list[dict[str, str]]:
        child = self._running()
        if child is None or child.stdin is None or child.stdout is None:
            return []
        guard = threading.Timer(self.timeout_s, child.kill)
        guard.start()
        try:
            child.stdin.write(request + "\n")
            child.stdin.flush()
            answer = child.stdout.readline()
        except OSError:
            return []
        finally:
            guard.cancel()
        return json.loads(answer) if answer.endswith("\n") else []


ENGINE = ChartEngine()
"""The engine of this process."""

atexit.register(ENGINE.close)


def warm_up() -> None:
    """Start the chart engine in the background, so that it is ready when the report is written."""
    ENGINE.start()

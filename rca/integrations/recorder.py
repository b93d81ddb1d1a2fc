"""What a training process writes down about itself, and the analysis that it starts when it fails."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any

from rca.launch.tasks import FOLDER, claimed


class Recorder:
    """Writes metrics, settings and the last exception of one rank below the run directory.

    A failure, or a loss that is no number at the end, starts `rca analyze` in a process of its own, once for all ranks:
    the process that failed may hold a broken device. Nothing here raises: training must not end for its record.
    """

    def __init__(self, run_dir: str | Path, *, rank: int, world_size: int, analyze: bool, output: str | Path) -> None:
        self._run_dir, self._output = Path(run_dir), Path(output)
        self._folder = self._run_dir / FOLDER / (f"rank_{rank}" if world_size > 1 else ".")
        self._first = rank == 0
        self._analyze = analyze
        self._started = time.time()
        self._finite = True
        self._failed: BaseException | None = None

    def settings(self, name: str, values: Mapping[str, Any]) -> None:
        """Keep settings as `NAME.json`; the first rank speaks for all."""
        if self._first:
            self._write(f"{name}.json", json.dumps(values, indent=1, default=str) + "\n", mode="w")

    def metrics(self, step: int, values: Mapping[str, Any]) -> None:
        """Keep the numbers of one step."""
        numbers = {key: number for key, value in values.items() if (number := _number(value)) is not None}
        loss = numbers.get("loss", numbers.get("train_loss", 0.0))
        self._finite = math.isfinite(loss)
        row = {"time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"), "step": step, **numbers}
        self._write("metrics.jsonl", json.dumps(row) + "\n", mode="a")

    def failed(self, error: BaseException) -> None:
        """Keep the exception, and analyse unless somebody pressed Ctrl-C."""
        if error is self._failed:
            return
        self._failed = error
        self._write("stderr.log", "".join(traceback.format_exception(error)), mode="a")
        if isinstance(error, Exception):
            self._analysed()

    def ended(self) -> None:
        """Training came to its end; a loss that is no number is a failure as well."""
        if not self._finite and self._failed is None:
            self._analysed()

    def _analysed(self) -> None:
        if not self._analyze:
            return
        try:
            first = claimed(self._run_dir / FOLDER, since=self._started)
        except OSError:
            return
        if not first:
            return
        command = [sys.executable, "-m", "rca", "analyze", str(self._run_dir), "-o", str(self._output)]
        subprocess.run([*command, "--experiments", "none"], stdout=sys.__stderr__, check=False)

    def _write(self, name: str, text: str, *, mode: str) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with (self._folder / name).open(mode, encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            sys.stderr.write(f"rca: {self._folder / name} cannot be written: {error.strerror}\n")


class UncaughtExceptions:
    """Tells a recorder of the exception that ends the process, and of those that leave a `with` block."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._before = sys.excepthook

    def install(self) -> None:
        """Listen; what listened before still does."""
        if sys.excepthook != self._tell:
            self._before = sys.excepthook
            sys.excepthook = self._tell

    def remove(self) -> None:
        """Stop listening."""
        if sys.excepthook == self._tell:
            sys.excepthook = self._before

    def _tell(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        self._before(kind, error, trace)
        self._recorder.failed(error)


def _number(value: Any) -> float | None:
    """Return a number, or what holds one (a tensor of one element), as a float."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        return None

"""A process that has the libraries imported and forks for every job: a run then costs its training, not its imports.

    python -m rca.lab.warm

Reads one JSON document a line from standard input and answers each, when its job has ended, with one line:

    {"program": "/tmp/x/train.py", "arguments": ["--seed=0"], "folder": "/tmp/x/run", "output": "/tmp/x/run/train.log",
     "seconds": 120}
    -7

The answer is the exit code, negative for a signal. The server never computes anything with torch itself, so forking is
safe. A job is executed as `python train.py` would execute it: as `__main__`, in its folder, with its own output.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

ENVIRONMENT: Mapping[str, str] = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": "1"}
"""What every job of the lab runs under: one thread, and no hub."""


class WarmPython:
    """The parent's side: runs programs one after the other in forks of one warm interpreter."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "rca.lab.warm"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ENVIRONMENT},
            cwd=Path(__file__).resolve().parents[2],
            text=True,
        )

    def run(self, program: Path, arguments: Sequence[str], folder: Path, output: Path, seconds: float) -> int:
        """Run a program in `folder` and return its exit code, negative for a signal."""
        request = {
            "program": str(program),
            "arguments": list(arguments),
            "folder": str(folder),
            "output": str(output),
            "seconds": seconds,
        }
        if self._process.stdin is None or self._process.stdout is None:
            raise BrokenPipeError("the warm interpreter has no pipes")
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End the interpreter."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def serve() -> None:
    """Answer requests until standard input ends."""
    _preload()
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(request)
        print(_code(pid, time.monotonic() + request["seconds"]), flush=True)


def _preload() -> None:
    """Import what the jobs import, model classes included; build nothing that needs autograd, which forbids forking."""
    import torch
    import torch.profiler
    import torch.utils.data
    import torch.utils.tensorboard
    from transformers import (  # noqa: F401
        AutoModelForCausalLM,
        GPT2Config,
        GPT2LMHeadModel,
        LlamaConfig,
        LlamaForCausalLM,
    )

    torch.set_num_threads(1)


def _become(request: dict[str, Any]) -> None:
    """Be the job, in the forked process, and never return."""
    code = 1
    try:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(request["folder"])
        with open(os.devnull, "rb") as nothing, open(request["output"], "wb") as output:
            os.dup2(nothing.fileno(), 0)
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115 - the streams of the process
        sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
        code = _execute(request["program"], request["arguments"])
    finally:
        with suppress(ValueError, OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _execute(program: str, arguments: Sequence[str]) -> int:
    sys.argv = [program, *arguments]
    sys.path.insert(0, str(Path(program).parent))
    module = ModuleType("__main__")
    module.__file__ = program
    sys.modules["__main__"] = module
    try:
        exec(compile(Path(program).read_text(encoding="utf-8"), program, "exec"), module.__dict__)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException as error:  # the end of a program: whatever it raises is printed, as the interpreter does
        traceback.print_exception(type(error), error, error.__traceback__.tb_next if error.__traceback__ else None)
        return 1
    return 0


def _code(pid: int, until: float) -> int:
    """Wait for a job, kill it with what it started when its time is over, and return its exit code."""
    pause = 0.01
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > until:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        time.sleep(pause)
        pause = min(0.1, 1.5 * pause)
    with suppress(ProcessLookupError):  # loader workers and the like that outlived their parent
        os.killpg(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    serve()

"""Runs a tiny job with a fault and keeps what it leaves behind."""

from __future__ import annotations

import getpass
import gzip
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path

from rca.errors import UsageError
from rca.lab.faults import Fault, Variant
from rca.lab.warm import ENVIRONMENT, WarmPython

TIME_LIMIT_S = 300
"""A job that takes longer is killed, and what it wrote until then is kept."""
_PACKAGES = (
    "torch", "transformers", "tokenizers", "safetensors", "numpy", "tensorboard", "huggingface-hub", "protobuf",
)  # fmt: skip
_TEXT = {".log", ".json", ".txt", ".yaml"}


def make(made: Variant, out: Path, *, warm: WarmPython | None = None) -> None:
    """Write `out/run/` and `out/truth.json`. With `warm` a job of one process is forked from an interpreter that has
    the libraries imported. Raises UsageError for a folder that is not empty.
    """
    fault, run = made.fault, out / "run"
    if run.exists() and any(run.iterdir()):
        raise UsageError(f"{run} is not empty; choose another folder")
    run.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rca-lab-") as workspace:
        program = Path(workspace) / "train.py"
        shutil.copy(Path(__file__).parent / "jobs" / f"{fault.job}.py", program)
        if warm is not None and fault.processes == 1:
            log = run.resolve() / "train.log"
            warm.run(program, made.arguments, run.resolve(), log, TIME_LIMIT_S)
        else:
            _execute(fault, program, run.resolve(), made.arguments)
        _packages(run / "requirements.txt")
        _keep(run, Path(workspace))
    command = f"rca lab make {fault.name}"
    for option, value, usual in (
        ("severity", made.severity, next(iter(fault.severities))),
        ("architecture", made.architecture, fault.architectures[0]),
        ("seed", made.seed, 0),
    ):
        command += f" --{option} {shlex.quote(str(value))}" if value != usual else ""
    truth = {
        "cause": fault.cause,
        "also_ok": list(fault.also_ok),
        "symptom": fault.symptom,
        "phase": fault.phase,
        "framework": "PyTorch",
        "source": command,
        "why": fault.why,
        "fix": fault.fix,
    }
    (out / "truth.json").write_text(json.dumps(truth, indent=2) + "\n", encoding="utf-8")


def _execute(fault: Fault, program: Path, run: Path, arguments: Sequence[str]) -> None:
    """Run the job in the run directory; its output, an ending by a signal included, goes to `train.log`."""
    command = [sys.executable]
    if fault.processes > 1:
        command += ["-m", "torch.distributed.run", f"--nproc_per_node={fault.processes}", "--standalone",
                    "--log-dir=logs", "--redirects=3", "--tee=3"]  # fmt: skip
    with (run / "train.log").open("wb") as output:
        job = subprocess.Popen(
            [*command, str(program), *arguments],
            cwd=run,
            env={**os.environ, **ENVIRONMENT},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            job.wait(TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()


def _packages(file: Path) -> None:
    installed = {(found.metadata["Name"] or "").lower().replace("_", "-"): found.version for found in distributions()}
    file.write_text(
        "".join(f"{name}=={installed[name]}\n" for name in _PACKAGES if name in installed), encoding="utf-8"
    )


def _keep(run: Path, workspace: Path) -> None:
    """Shrink what was left to what an incident would attach, without names of this machine."""
    shutil.rmtree(run / "checkpoint", ignore_errors=True)
    for weights in run.glob("*.pt"):
        weights.unlink()
    for folder in sorted(run.glob("logs/*/attempt_0")):
        shutil.move(str(folder), run / "logs" / "attempt_0")
        shutil.rmtree(folder.parent, ignore_errors=True)
    names = _replacements(workspace)
    for file in sorted(path for path in run.rglob("*") if path.is_file()):
        if file.suffix in _TEXT:
            text = file.read_text(encoding="utf-8", errors="replace")
            for name, stand_in in names:
                text = text.replace(name, stand_in)
            file.write_text(text, encoding="utf-8")
        if file.name.endswith(".pt.trace.json"):
            with gzip.GzipFile(f"{file}.gz", "wb", mtime=0) as packed:
                packed.write(file.read_bytes())
            file.unlink()
        elif ".tfevents." in file.name:
            file.rename(file.with_name(file.name.replace(socket.gethostname(), "node-0")))
        elif file.suffix in {".log", ".json"} and file.stat().st_size == 0:
            file.unlink()


def _replacements(workspace: Path) -> list[tuple[str, str]]:
    """Paths and names of this machine with what stands for them, longest first."""
    pairs = {
        str(workspace): "/workspace/job",
        sys.prefix: "/opt/venv",
        sys.base_prefix: "/usr",
        sysconfig.get_paths()["purelib"]: "/opt/venv/lib/python3/site-packages",
        sysconfig.get_paths()["stdlib"]: "/usr/lib/python3",
        socket.gethostname(): "node-0",
        str(Path.home()): "/home/user",
    }
    user = getpass.getuser()
    if user != "root":
        pairs[f"/{user}/"] = "/user/"
    return sorted(pairs.items(), key=lambda pair: -len(pair[0]))

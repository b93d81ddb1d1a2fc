"""What the machine says about itself after a failure: variables, packages, devices, the kernel's last words."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rca.redact.redactor import Redactor

_TIMEOUT_S = 15.0
_KERNEL_LINES = 2000
_PACKAGES = "import importlib.metadata as m\nfor d in m.distributions():\n print(f'{d.name}=={d.version}')"
_COMMANDS: Mapping[str, Sequence[str]] = {
    "nvidia-smi.txt": ("nvidia-smi",),
    "nvidia-smi-q.txt": ("nvidia-smi", "-q"),
    "rocm-smi.txt": ("rocm-smi",),
    "dmesg.txt": ("dmesg", "-T", "--since", "{since}"),
}


def take(folder: Path, command: Sequence[str], environ: Mapping[str, str], *, since: float) -> None:
    """Write what can be had; a tool that is not there or may not be asked leaves no file.

    Of the kernel's log, what was said `since` (seconds since the epoch): older lines belong to other jobs.
    """
    _write(folder / "environment.txt", "\n".join(_shown(environ)))
    python = interpreter(command)
    if python is not None:
        _write(folder / "pip_freeze.txt", _said((python, "-c", _PACKAGES)))
    first = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(since))
    for name, asked in _COMMANDS.items():
        if shutil.which(asked[0]):
            said = _said([word.format(since=first) for word in asked]).splitlines()
            _write(folder / name, "\n".join(said[-_KERNEL_LINES:]))


def _shown(environ: Mapping[str, str]) -> Iterator[str]:
    """Variables as lines, redacted; a secret in one is replaced in the others too."""
    redactor = Redactor("default")
    lines = {name: value for name, value in sorted(environ.items()) if "\n" not in value}
    for name, value in lines.items():
        redactor.learn_value(name, value)
        redactor.learn(f"{name}={value}")
    for name, value in lines.items():
        shown = redactor.value(name, value)
        yield redactor.text(f"{name}={shown}")


def interpreter(command: Sequence[str]) -> str | None:
    """Return the Python that runs a command: the command itself or what its first line names; None without one."""
    program = shutil.which(command[0])
    if program is None:
        return None
    if Path(program).name.startswith("python"):
        return program
    try:
        with open(program, "rb") as stream:
            first = stream.readline(400).decode("utf-8", "replace").strip()
    except OSError:
        return None
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    found = next((word for word in words if Path(word).name.startswith("python")), None)
    return shutil.which(found) if found else None


def _said(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL, cwd=sys.prefix
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def _write(file: Path, text: str) -> None:
    if text.strip():
        file.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
